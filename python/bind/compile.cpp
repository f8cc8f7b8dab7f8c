// SPDX-License-Identifier: Apache-2.0
#include <atomic>

#include "core/ir/print.h"
#include "core/vm/emit.h"
#include "core/vm/kernels/targets.h"
#include "python/bind/compiled.h"
#include "python/bind/host.h"
#include "python/bind/pass_options.h"
#include "python/bind/program.h"

namespace pypto::bind {
namespace {

/// A parameter of an entry as Python sees it.
struct PyParam {
  vm::ParamInfo info;
  bool has_baked = false;
  ir::BakedScalar baked;
};

bool is_tensor(const vm::ParamInfo& p) { return p.type && p.type->is_array_like(); }

nb::object baked_value(const PyParam& p) {
  if (!p.has_baked) return nb::none();
  const DType d = p.info.type->dtype;
  if (d == DType::kBool) return nb::bool_(p.baked.int_value != 0);
  if (is_float(d)) return nb::float_(p.baked.float_value);
  return nb::int_(p.baked.int_value);
}

/// How executable code is emitted; tests switch it to run every program in each way.
std::atomic<bool> force_copies{false};
std::atomic<bool> use_chains{true};

vm::EmitOptions emit_options() {
  vm::EmitOptions o;
  o.force_copies = force_copies.load();
  o.chains = use_chains.load();
  return o;
}

/// Index of the first warning of the lowered program that was not already reported when it was read.
size_t fresh_warnings(const ir::Module& before, const ir::Module& after) {
  const size_t n = before.warnings.size();
  if (after.warnings.size() < n) return 0;
  for (size_t i = 0; i < n; ++i) {
    if (after.warnings[i].message != before.warnings[i].message) return 0;
  }
  return n;
}

nb::object compile(nb::object program, const std::string& arch, const std::string& planner,
                   bool double_buffer_c, bool analyze, int world_size, std::vector<int> device_ids,
                   bool devices, nb::object after) {
  auto& source = nb::cast<PyProgram&>(program);
  ir::ModulePtr module = module_for(source, arch_from_text(arch));
  passes::PassOptions options = pass_options(planner, double_buffer_c, analyze, world_size);
  options.device_ids = std::move(device_ids);
  options.devices = devices;
  if (!after.is_none()) {
    options.after = [after](const std::string& name, const ir::Module& m) {
      nb::gil_scoped_acquire gil;
      after(name, program_object(guarded([&] { return ir::clone(m); })));
    };
  }
  PyCompiled c;
  passes::LowerResult lowered;
  {
    nb::gil_scoped_release release;
    guarded([&] {
      lowered = passes::lower(*module, options);
      c.code = vm::emit(*lowered.module, emit_options());
      if (options.after) passes::device_form(*lowered.module, options);  // for the stages' texts
    });
  }
  c.lowered = lowered.module;
  c.memory = std::move(lowered.memory);
  c.source = program;
  c.program = program_object(c.lowered);
  c.warnings = c.lowered->warnings;
  for (const auto& f : c.lowered->functions) {
    if (f->is_sub_worker && !f->requires_runtime_binding && f->host_callable >= 0) {
      c.callables[f->name] = callable_object(f->host_callable);
    }
  }
  issue_warnings(c.warnings, fresh_warnings(*module, *c.lowered));
  return nb::cast(std::move(c));
}

nb::object device_form(nb::object program) {
  auto& source = nb::cast<PyProgram&>(program);
  ir::ModulePtr made;
  {
    nb::gil_scoped_release release;
    guarded([&] { made = passes::device_form(*source.module, {}); });
  }
  return program_object(made);
}

// Saved form: tag, then four blocks (executable form, lowered program, program as handed in, findings
// omitted), each preceded by its length.
constexpr char kTag[] = "PYPTOBIN1";

void put_block(std::string& out, const std::string& block) {
  uint64_t n = block.size();
  for (int i = 0; i < 8; ++i) out.push_back(static_cast<char>(n >> (8 * i) & 0xff));
  out += block;
}

std::string get_block(const std::string& in, size_t& at) {
  if (at + 8 > in.size()) fail(ErrorClass::kValueError, "program bytes are cut off");
  uint64_t n = 0;
  for (int i = 0; i < 8; ++i)
    n |= static_cast<uint64_t>(static_cast<unsigned char>(in[at + static_cast<size_t>(i)])) << (8 * i);
  at += 8;
  if (n > in.size() - at) fail(ErrorClass::kValueError, "program bytes are cut off");
  std::string block = in.substr(at, n);
  at += n;
  return block;
}

nb::bytes save(PyCompiled& c) {
  std::string out = kTag;
  guarded([&] {
    put_block(out, vm::save(*c.code));
    put_block(out, ir::serialize(*c.lowered));
    if (nb::isinstance<PyProgram>(c.source)) {
      put_block(out, ir::serialize(*nb::cast<PyProgram&>(c.source).module));
    } else {
      put_block(out, c.source_bytes);
    }
  });
  return nb::bytes(out.data(), out.size());
}

nb::object load(const nb::bytes& data) {
  const std::string in(data.c_str(), data.size());
  if (in.rfind(kTag, 0) != 0) {
    fail(ErrorClass::kValueError, "these bytes are not a compiled program of this version; recompile");
  }
  size_t at = sizeof(kTag) - 1;
  PyCompiled c;
  guarded([&] {
    c.code = vm::load(get_block(in, at));
    c.lowered = ir::deserialize_module(get_block(in, at));
    c.source_bytes = get_block(in, at);
  });
  c.source = nb::none();
  c.program = program_object(c.lowered);
  return nb::cast(std::move(c));
}

/// The program that a compiled one was made from: lets an artifact be compiled for another architecture (04
/// PLAT-5).
nb::object source_program(PyCompiled& c) {
  if (!c.source.is_none()) return c.source;
  if (c.source_bytes.empty()) return nb::none();
  return program_object(guarded([&] { return ir::deserialize_module(c.source_bytes); }));
}

std::vector<PyParam> params(const PyCompiled& c, std::optional<std::string> entry) {
  const int index = entry_index(c, entry);
  const vm::FunctionCode& f = c.code->functions[static_cast<size_t>(index)];
  std::vector<PyParam> out;
  for (const auto& p : f.params) out.push_back({p, false, {}});
  if (index == c.code->entry) {
    for (const auto& b : c.code->baked) {
      if (b.param < 0 || static_cast<size_t>(b.param) >= out.size()) continue;
      out[static_cast<size_t>(b.param)].has_baked = true;
      out[static_cast<size_t>(b.param)].baked = b;
    }
  }
  return out;
}

nb::list memory_report(const PyCompiled& c) {
  nb::list out;
  for (const auto& m : c.memory) {
    nb::dict d;
    d["kernel"] = m.kernel;
    d["space"] = enum_object("MemorySpace", static_cast<int>(m.space));
    d["used"] = m.used;
    d["limit"] = m.limit;
    nb::list tiles;
    for (const auto& t : m.tiles) {
      nb::dict e;
      e["name"] = t.name;
      e["offset"] = t.offset;
      e["bytes"] = t.bytes;
      e["from"] = t.from;
      e["to"] = t.to;
      e["file"] = t.span.known() ? nb::object(nb::str(t.span.file->path.c_str())) : nb::none();
      e["line"] = t.span.known() ? nb::object(nb::int_(t.span.line)) : nb::none();
      tiles.append(e);
    }
    d["tiles"] = tiles;
    out.append(d);
  }
  return out;
}

nb::list kernels(const PyCompiled& c) {
  nb::list out;
  for (const auto& f : c.code->functions) {
    const bool kernel = f.type == ir::FunctionType::kInCore || f.type == ir::FunctionType::kAIC ||
                        f.type == ir::FunctionType::kAIV;
    if (!kernel) continue;
    const char* core = f.core == vm::CoreKind::kCube ? "aic" : f.core == vm::CoreKind::kMixed ? "mix" : "aiv";
    out.append(nb::make_tuple(f.name, core));
  }
  return out;
}

bool uses_sdma(const PyCompiled& c) {
  for (const auto& f : c.code->functions) {
    for (const auto& op : f.ops) {
      if (ir::op_row(op.op).forms & ir::kFormPrefetch) return true;
    }
  }
  return false;
}

std::vector<int> returns(const PyCompiled& c, std::optional<std::string> entry) {
  return c.code->functions[static_cast<size_t>(entry_index(c, entry))].result_params;
}

/// A function that the program has not got, by name: says which it has.
[[noreturn]] void refuse_function(const PyCompiled& c, const std::string& name) {
  std::vector<std::string> names;
  for (const auto& f : c.code->functions) names.push_back(f.name);
  std::string known;
  for (const auto& n : names) known += (known.empty() ? "'" : ", '") + n + "'";
  const std::string near = nearest(name, names);
  fail(ErrorClass::kKeyError,
       "program '" + c.code->name + "' has no function '" + name + "'; " +
           (names.empty() ? std::string("it has none at all") : "its functions are " + known),
       names.empty() ? Span() : c.code->functions.front().span,
       near.empty() ? "" : "did you mean '" + near + "'?");
}

}  // namespace

int entry_index(const PyCompiled& c, const std::optional<std::string>& entry) {
  if (entry) {
    const int i = c.code->find(*entry);
    if (i < 0) refuse_function(c, *entry);
    return i;
  }
  if (c.code->entry < 0) {
    std::string names;
    for (const int i : c.code->entries) {
      names += (names.empty() ? "" : ", ") + c.code->functions[static_cast<size_t>(i)].name;
    }
    const Span first = c.code->functions.empty() ? Span() : c.code->functions.front().span;
    if (names.empty()) {
      fail(ErrorClass::kValueError,
           "program '" + c.code->name +
               "' has no entry: of several functions none is an Orchestration function",
           first, "give it one function with type=pl.FunctionType.Orchestration");
    }
    fail(ErrorClass::kTypeError,
         "program '" + c.code->name + "' has several entries; select one explicitly: " + names);
  }
  return c.code->entry;
}

void register_compile(nb::module_& m) {
  nb::class_<PyParam>(m, "ParamInfo", "A parameter of an entry.")
      .def_prop_ro("name", [](const PyParam& p) { return p.info.name; })
      .def_prop_ro(
          "direction",
          [](const PyParam& p) { return enum_object("ParamDirection", static_cast<int>(p.info.declared)); })
      .def_prop_ro(
          "effective_direction",
          [](const PyParam& p) { return enum_object("ParamDirection", static_cast<int>(p.info.effective)); })
      .def_prop_ro("is_tensor", [](const PyParam& p) { return is_tensor(p.info); })
      .def_prop_ro("shape",
                   [](const PyParam& p) -> nb::object {
                     if (!is_tensor(p.info)) return nb::none();
                     nb::list out;
                     for (const auto& d : p.info.type->shape) out.append(d.is_const() ? d.value : -1);
                     return out;
                   })
      .def_prop_ro("dims",
                   [](const PyParam& p) -> nb::object {
                     if (!is_tensor(p.info)) return nb::none();
                     nb::list out;
                     for (const auto& d : p.info.type->shape) {
                       if (d.is_const()) {
                         out.append(d.value);
                       } else {
                         out.append(ir::dim_text(d));
                       }
                     }
                     return out;
                   })
      .def_prop_ro("dtype", [](const PyParam& p) { return dtype_object(p.info.type->dtype); })
      .def_prop_ro("type_text", [](const PyParam& p) { return ir::type_text(*p.info.type); })
      .def_prop_ro("location", [](const PyParam& p) { return p.info.span.text(); })
      .def_prop_ro("baked", &baked_value)
      .def("__repr__", [](const PyParam& p) {
        return "ParamInfo(" + p.info.name + ": " + ir::type_text(*p.info.type) + ")";
      });
  nb::class_<PyCompiled>(m, "Compiled", nb::dynamic_attr(), "A lowered program with its executable form.")
      .def_prop_ro("name", [](const PyCompiled& c) { return c.code->name; })
      .def_prop_ro("arch", [](const PyCompiled& c) { return arch_text(c.code->arch); })
      .def_prop_ro("distributed", [](const PyCompiled& c) { return c.code->distributed(); })
      .def_prop_ro("source", &source_program)
      .def_prop_ro("program", [](const PyCompiled& c) { return c.program; })
      .def_prop_ro("entry",
                   [](const PyCompiled& c) -> nb::object {
                     if (c.code->entry < 0) return nb::none();
                     return nb::str(c.code->functions[static_cast<size_t>(c.code->entry)].name.c_str());
                   })
      .def_prop_ro("entries",
                   [](const PyCompiled& c) {
                     nb::list out;
                     if (c.code->entry >= 0) return out;
                     for (const int i : c.code->entries)
                       out.append(c.code->functions[static_cast<size_t>(i)].name);
                     return out;
                   })
      .def_prop_ro("sub_workers",
                   [](const PyCompiled& c) {
                     nb::dict out;
                     for (const auto& f : c.code->functions) {
                       if (f.role == ir::Role::kSubWorker) out[f.name.c_str()] = f.requires_binding;
                     }
                     return out;
                   })
      .def_prop_ro("memory", &memory_report)
      .def_prop_ro("warnings",
                   [](const PyCompiled& c) {
                     nb::list out;
                     for (const auto& d : c.warnings) out.append(diagnostic_object(d));
                     return out;
                   })
      .def("params", &params, nb::arg("entry") = nb::none())
      .def("returns", &returns, nb::arg("entry") = nb::none())
      .def(
          "has_return",
          [](const PyCompiled& c, std::optional<std::string> entry) {
            return !c.code->functions[static_cast<size_t>(entry_index(c, entry))].result_params.empty();
          },
          nb::arg("entry") = nb::none())
      .def("kernels", &kernels)
      .def("uses_sdma", &uses_sdma)
      .def("save", &save)
      .def("disassemble",
           [](const PyCompiled& c) { return guarded([&] { return vm::disassemble(*c.code); }); })
      .def("__repr__", [](const PyCompiled& c) {
        return "Compiled('" + c.code->name + "', " + arch_text(c.code->arch) + ")";
      });
  m.def("compile", &compile, nb::arg("program"), nb::kw_only(), nb::arg("arch") = "a2a3",
        nb::arg("planner") = "PYPTO", nb::arg("double_buffer_c") = false,
        nb::arg("analyze_auto_scopes_for_deps") = false, nb::arg("world_size") = 0,
        nb::arg("device_ids") = std::vector<int>(), nb::arg("devices") = false,
        nb::arg("after").none() = nb::none());
  m.def("device_form", &device_form, nb::arg("program"),
        "The lowered program as a device runs it: kernels of tiles, mixed ones as pairs (01 L-67).");
  m.def("load", &load, nb::arg("data"));
  m.def(
      "set_emit_debug",
      [](bool copies, bool chains) {
        force_copies = copies;
        use_chains = chains;
      },
      nb::arg("force_copies"), nb::arg("chains"));
  m.def("instruction_sets", &vm::instruction_sets);
  m.def(
      "use_instruction_set",
      [](const std::string& name) {
        if (!vm::use_instruction_set(name))
          throw nb::value_error(("no instruction set '" + name + "'").c_str());
      },
      nb::arg("name"));
}

}  // namespace pypto::bind
