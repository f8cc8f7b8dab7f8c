// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/base/poll.h"
#include "core/sema/builder.h"

/// The module: functions by source, names, warnings, and the entry points of sema.h.
namespace pypto::sema {

ProgramBuilder::ProgramBuilder(BuildOptions build_options, std::string name) : options(build_options) {
  module = std::make_shared<ir::Module>();
  module->name = std::move(name);
  module->arch = options.arch;
}

std::shared_ptr<FunctionSource> ProgramBuilder::find_method(const std::string& name) const {
  for (const auto& m : methods) {
    if (m->name == name) return m;
  }
  return nullptr;
}

std::vector<std::string> ProgramBuilder::method_names() const {
  std::vector<std::string> out;
  for (const auto& m : methods) out.push_back(m->name);
  return out;
}

std::string ProgramBuilder::unique_function_name(const std::string& base) const {
  std::string name = base;
  for (int n = 1; module->find(name); ++n) name = base + "_" + std::to_string(n);
  return name;
}

void ProgramBuilder::warn(Diagnostic d) {
  d.severity = Severity::kWarning;
  const std::string key = d.id + "|" + d.span.text() + "|" + d.message;
  if (!warned_.insert(key).second) return;
  warned_order_.push_back(key);
  module->warnings.push_back(std::move(d));
}

void ProgramBuilder::warn(const Span& span, std::string id, std::string message, std::string hint) {
  Diagnostic d;
  d.cls = ErrorClass::kValueError;
  d.severity = Severity::kWarning;
  d.id = std::move(id);
  d.message = std::move(message);
  d.span = span;
  d.hint = std::move(hint);
  warn(std::move(d));
}

void ProgramBuilder::rollback(const Mark& m) {
  while (warned_order_.size() > m.warnings) {
    warned_.erase(warned_order_.back());
    warned_order_.pop_back();
  }
  module->warnings.resize(m.warnings);
  windows = m.windows;
  if (printed_.size() > m.lines)
    printed_.erase(printed_.begin() + static_cast<long>(m.lines), printed_.end());
}

void ProgramBuilder::flush_prints() {
  for (const auto& [host, line] : printed_) {
    if (host) host->print(line);
  }
  printed_.clear();
}

void ProgramBuilder::enter(const std::shared_ptr<FunctionSource>& source, const Span& call) {
  if (std::find(building_.begin(), building_.end(), source) != building_.end()) {
    std::string chain;
    bool on = false;
    for (const auto& f : building_) {
      on = on || f == source;
      if (on) chain += f->name + " -> ";
    }
    reject(ErrorClass::kValueError, call, "Cycle detected: " + chain + source->name,
           "functions of a program cannot call each other in a circle");
  }
  building_.push_back(source);
}

namespace {

void add_callees(const ir::ExprPtr& e, std::vector<ir::FunctionPtr>& out) {
  if (!e) return;
  for (const auto& a : e->args) add_callees(a, out);
  if (e->kind == ir::ExprKind::kCall && e->call) out.push_back(e->call->callee);
}

void add_callees(const ir::Block& block, std::vector<ir::FunctionPtr>& out) {
  for (const auto& s : block) {
    poll();
    add_callees(s->value, out);
    for (const auto& v : s->values) add_callees(v, out);
    for (const auto& c : s->carries) add_callees(c.init, out);
    add_callees(s->body, out);
    add_callees(s->else_body, out);
  }
}

}  // namespace

ir::FunctionPtr ProgramBuilder::declared_function(const std::shared_ptr<FunctionSource>& source,
                                                  const Span& call) {
  const auto it = declared_.find(source.get());
  if (it != declared_.end()) return it->second;
  source->ensure_loaded();
  if (source->decl == DeclKind::kIrFunction) return adopt(source, call);
  enter(source, call);
  FunctionBuilder b(*this, source);
  b.declare_params();
  b.read_return_annotation(false);
  b.decide_place();
  b.build_body();
  leave();
  facts_[b.fn.get()] = std::move(b.facts);
  declared_[source.get()] = b.fn;
  if (source->decl == DeclKind::kSubWorker || !is_class) {
    if (!module->find(b.fn->name)) module->functions.push_back(b.fn);
  }
  return b.fn;
}

ir::FunctionPtr ProgramBuilder::adopt(const std::shared_ptr<FunctionSource>& source, const Span& call) {
  const auto it = declared_.find(source.get());
  if (it != declared_.end()) return it->second;
  const ir::FunctionPtr& f = source->ir_function;
  if (!f) reject(ErrorClass::kParserTypeError, call, "'" + source->name + "' is not a built function");
  for (const auto& m : methods) {
    if (m->name == f->name) {
      reject(ErrorClass::kParserSyntaxError, call,
             "External function '" + f->name + "' conflicts with program function '" + f->name + "'",
             "rename one of them");
    }
  }
  for (const auto& [other, g] : declared_) {
    if (g != f && g->name == f->name && other->decl == DeclKind::kIrFunction && other->ir_function != f) {
      reject(ErrorClass::kParserSyntaxError, call, "Conflicting external functions named '" + f->name + "'",
             "give the factories' functions other names");
    }
  }
  declared_[source.get()] = f;
  // What it calls comes with it.
  std::vector<ir::FunctionPtr> brought{f};
  for (size_t i = 0; i < brought.size(); ++i) {
    const ir::FunctionPtr one = brought[i];
    const ir::FunctionPtr known = module->find(one->name);
    if (known && known != one) {
      reject(ErrorClass::kParserSyntaxError, call, "Conflicting external functions named '" + one->name + "'",
             "'" + f->name + "' calls a function of that name: rename one of them");
    }
    if (known) continue;
    module->functions.insert(module->functions.end() - static_cast<long>(i ? 1 : 0), one);
    std::vector<ir::FunctionPtr> callees;
    add_callees(one->body, callees);
    for (const auto& c : callees) {
      if (std::find(brought.begin(), brought.end(), c) == brought.end()) brought.push_back(c);
    }
  }
  FunctionFacts facts;
  facts.source = source;
  facts.annotated.assign(f->params.size(), true);
  for (size_t i = 0; i < f->params.size(); ++i) {
    const auto d = i < f->effective_directions.size() ? f->effective_directions[i] : f->directions[i];
    facts.read.push_back(d != ir::ParamDirection::kOut);
    facts.written.push_back(d != ir::ParamDirection::kIn);
    facts.symbol_param.push_back(false);
  }
  facts_[f.get()] = std::move(facts);
  return f;
}

// ------------------------------------------------------------------ entry points

namespace {

/// One exception for all: the first, with the independent others in its notes (01 L-180).
void throw_first(std::vector<Failure>& failures) {
  if (failures.empty()) return;
  Failure& first = failures.front();
  std::set<std::string> seen{first.diagnostic().span.text() + first.diagnostic().message};
  for (size_t i = 1; i < failures.size() && seen.size() <= 20; ++i) {
    const Diagnostic& d = failures[i].diagnostic();
    if (seen.insert(d.span.text() + d.message).second) {
      first.diagnostic().notes.push_back({"another error: " + d.message, d.span});
    }
  }
  throw first;
}

}  // namespace

ir::ModulePtr build_program(const ProgramSource& program, const BuildOptions& options) {
  ProgramBuilder b(options, program.name);
  b.is_class = true;
  b.methods = program.functions;
  if (program.functions.empty()) {
    reject(ErrorClass::kParserSyntaxError, program.span,
           "Class '" + program.name + "' contains no @pl.function methods (contains no @pl.function)",
           "decorate at least one method with @pl.function");
  }
  for (const auto& f : program.functions) {
    if (program.strict_ssa) f->strict_ssa = true;
  }
  std::vector<ir::FunctionPtr> ordered;
  std::vector<Failure> failures;
  for (const auto& f : program.functions) {
    // Bodies of inline methods are read where they are called.
    if (f->type == ir::FunctionType::kInline && f->decl == DeclKind::kProgramMethod) continue;
    try {
      ordered.push_back(b.declared_function(f, f->def ? f->def->span : program.span));
    } catch (const Failure& failure) {
      if (failure.diagnostic().cls == ErrorClass::kInternalError || failure.diagnostic().host_exception >= 0)
        throw;
      failures.push_back(failure);
      b.abandon();
    }
  }
  throw_first(failures);
  for (const auto& f : b.module->functions) {
    if (std::find(ordered.begin(), ordered.end(), f) == ordered.end()) ordered.push_back(f);
  }
  b.module->functions = ordered;
  b.flush_prints();
  return b.module;
}

ir::ModulePtr build_function(const std::shared_ptr<FunctionSource>& function, const BuildOptions& options) {
  function->ensure_loaded();
  ProgramBuilder b(options, function->name);
  const ir::FunctionPtr f = b.declared_function(function, function->def ? function->def->span : Span());
  auto& list = b.module->functions;
  list.erase(std::remove(list.begin(), list.end(), f), list.end());
  list.push_back(f);
  b.flush_prints();
  return b.module;
}

ir::ModulePtr build_jit(const std::shared_ptr<FunctionSource>& entry, const std::vector<ArgSpec>& args,
                        const BuildOptions& options) {
  entry->ensure_loaded();
  ProgramBuilder b(options, "_jit_" + entry->name);
  b.build_entry(entry, args);
  b.flush_prints();
  return b.module;
}

}  // namespace pypto::sema
