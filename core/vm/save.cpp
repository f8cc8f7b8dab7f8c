// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <string_view>
#include <type_traits>
#include <unordered_map>

#include "core/base/poll.h"
#include "core/vm/emit.h"
#include "core/vm/view.h"

/// One description of every record (`fields`) serves writing and reading. Numbers are little-endian and fixed
/// width; the reader checks a checksum and every length against what is left, and `Bounds` every index that
/// the interpreter follows.
namespace pypto::vm {
namespace {

constexpr char kMagic[8] = {'P', 'Y', 'P', 'T', 'O', 'B', 'C', '1'};
constexpr uint32_t kVersion = 4;

/// Says which operations the program's numbers and operand positions mean: a hash of the names and signatures
/// of the table.
uint32_t operations() {
  static const uint32_t hash = [] {
    uint32_t h = 0x811C9DC5u;
    for (int i = 0; i < ir::kOpCount; ++i) {
      const ir::OpRow& row = ir::op_row(static_cast<ir::OpId>(i));
      for (const char* text : {row.name, row.sig}) {
        do h = (h ^ static_cast<uint8_t>(*text)) * 0x01000193u;
        while (*text++ != 0);
      }
    }
    return h;
  }();
  return hash;
}

uint64_t checksum(std::string_view bytes) {
  uint64_t h = 0xCBF29CE484222325u;
  for (const char c : bytes) h = (h ^ static_cast<uint8_t>(c)) * 0x100000001B3u;
  return h;
}

[[noreturn]] void damaged(const std::string& what) {
  fail(ErrorClass::kValueError, "program bytes are damaged or of another version: " + what, {},
       "recompile the program");
}

class Writer {
 public:
  static constexpr bool kReading = false;
  std::string out;
  template <class T>
  void pod(T& v) {
    out.append(reinterpret_cast<const char*>(&v), sizeof(T));
  }
  size_t count(size_t n) {
    auto v = static_cast<uint32_t>(n);
    pod(v);
    return n;
  }
  void text(std::string& s) {
    count(s.size());
    out += s;
  }
  std::vector<std::shared_ptr<const SourceFile>> files;
  std::unordered_map<const SourceFile*, uint32_t> file_index;
  void file(std::shared_ptr<const SourceFile>& f) {
    uint32_t index = 0;
    if (f) {
      auto [it, fresh] = file_index.try_emplace(f.get(), static_cast<uint32_t>(files.size()) + 1);
      if (fresh) files.push_back(f);
      index = it->second;
    }
    pod(index);
  }
};

class Reader {
 public:
  static constexpr bool kReading = true;
  explicit Reader(const std::string& bytes) : bytes_(bytes) {}
  template <class T>
  void pod(T& v) {
    if (bytes_.size() - at_ < sizeof(T)) damaged("unexpected end");
    std::memcpy(&v, bytes_.data() + at_, sizeof(T));
    at_ += sizeof(T);
  }
  void pod(bool& v) {
    uint8_t byte = 0;
    pod(byte);
    if (byte > 1) damaged("a truth value");
    v = byte != 0;
  }
  size_t count(size_t) {
    uint32_t v = 0;
    pod(v);
    if (v > bytes_.size() - at_) damaged("a length exceeds the data");
    return v;
  }
  void text(std::string& s) {
    const size_t n = count(0);
    s.assign(bytes_.data() + at_, n);
    at_ += n;
  }
  std::vector<std::shared_ptr<const SourceFile>> files;
  void file(std::shared_ptr<const SourceFile>& f) {
    uint32_t index = 0;
    pod(index);
    if (index > files.size()) damaged("unknown source file");
    f = index == 0 ? nullptr : files[index - 1];
  }
  bool at_end() const { return at_ == bytes_.size(); }
  std::string_view rest() const { return std::string_view(bytes_).substr(at_); }

 private:
  const std::string& bytes_;
  size_t at_ = 0;
};

template <class Ar, class T>
void item(Ar& ar, T& v);

template <class Ar, class T>
void list(Ar& ar, std::vector<T>& v) {
  const size_t n = ar.count(v.size());
  if constexpr (Ar::kReading) {
    v.clear();
    for (size_t i = 0; i < n; ++i) {
      T x{};
      item(ar, x);
      v.push_back(std::move(x));
    }
  } else {
    for (auto& x : v) item(ar, x);
  }
}

template <class Ar>
void fields(Ar& ar, Span& s) {
  ar.file(s.file);
  ar.pod(s.line);
  ar.pod(s.column);
  ar.pod(s.end_line);
  ar.pod(s.end_column);
}

template <class Ar>
void fields(Ar& ar, Reg& r) {
  ar.pod(r.cls);
  ar.pod(r.index);
  ar.pod(r.dtype);
}

template <class Ar>
void fields(Ar& ar, Insn& i) {
  ar.pod(i.op);
  ar.pod(i.dtype);
  ar.pod(i.dtype2);
  ar.pod(i.flags);
  ar.pod(i.sub);
  ar.pod(i.dst);
  ar.pod(i.a);
  ar.pod(i.b);
  ar.pod(i.c);
  ar.pod(i.site);
}

template <class Ar>
void fields(Ar& ar, Site& s) {
  fields(ar, s.span);
  ar.text(s.what);
}

template <class Ar>
void fields(Ar& ar, Operand& o) {
  ar.pod(o.kind);
  fields(ar, o.reg);
  list(ar, o.list);
  ar.text(o.name);
}

template <class Ar>
void fields(Ar& ar, ir::AttrMap& m) {
  const size_t n = ar.count(m.entries().size());
  for (size_t i = 0; i < n; ++i) {
    ir::AttrKey key{};
    ir::AttrValue value;
    if constexpr (!Ar::kReading) {
      key = m.entries()[i].first;
      value = m.entries()[i].second;
    }
    ar.pod(key);
    auto which = static_cast<uint8_t>(value.index());
    ar.pod(which);
    if constexpr (Ar::kReading) {
      if (key >= ir::AttrKey::kCount) damaged("unknown attribute");
      switch (which) {
        case 0:
          value = int64_t{0};
          break;
        case 1:
          value = 0.0;
          break;
        case 2:
          value = std::string();
          break;
        case 3:
          value = std::vector<int64_t>();
          break;
        default:
          damaged("unknown attribute kind");
      }
    }
    std::visit(
        [&](auto& v) {
          using T = std::decay_t<decltype(v)>;
          if constexpr (std::is_same_v<T, std::string>) {
            ar.text(v);
          } else if constexpr (std::is_same_v<T, std::vector<int64_t>>) {
            list(ar, v);
          } else {
            ar.pod(v);
          }
        },
        value);
    if constexpr (Ar::kReading) m.set(key, std::move(value));
  }
}

template <class Ar>
void fields(Ar& ar, OpInsn& o) {
  ar.pod(o.op);
  fields(ar, o.attrs);
  list(ar, o.operands);
  list(ar, o.results);
  list(ar, o.result_is_tile);
  list(ar, o.result_space);
}

template <class Ar>
void fields(Ar& ar, CallInsn& c) {
  ar.pod(c.callee);
  list(ar, c.args);
  list(ar, c.no_dep);
  list(ar, c.results);
  fields(ar, c.task);
  ar.pod(c.local);
  ar.pod(c.member);
  ar.pod(c.has_deps);
  list(ar, c.deps);
  fields(ar, c.core_num);
  ar.pod(c.sync_start);
  fields(ar, c.device);
  ar.pod(c.has_predicate);
  fields(ar, c.predicate_tensor);
  list(ar, c.predicate_index);
  ar.pod(c.predicate_op);
  ar.pod(c.predicate_value);
  ar.pod(c.allow_early_resolve);
  list(ar, c.dump);
  ar.pod(c.group_site);
}

template <class Ar>
void fields(Ar& ar, CreateInsn& c) {
  ar.pod(c.dtype);
  list(ar, c.shape);
  ar.pod(c.manual_dep);
  ar.pod(c.has_init);
  ar.pod(c.init);
  ar.pod(c.on_chip);
  ar.text(c.name);
}

template <class Ar>
void fields(Ar& ar, LanesInsn& l) {
  ar.pod(l.begin);
  ar.pod(l.end);
  ar.pod(l.lane_reg);
  ar.pod(l.mode);
  list(ar, l.joins);
}

template <class Ar>
void fields(Ar& ar, LanesInsn::Join& j) {
  ar.pod(j.lane_view);
  ar.pod(j.parent_view);
  ar.pod(j.site);
}

template <class Ar>
void fields(Ar& ar, ChainStep& c) {
  ar.pod(c.op);
  ar.pod(c.dtype);
  ar.pod(c.lhs);
  ar.pod(c.rhs);
  ar.pod(c.scalar);
  ar.pod(c.mode);
  ar.pod(c.is_tile);
}

template <class Ar>
void fields(Ar& ar, FoldedOp& o) {
  ar.pod(o.value);
  ar.pod(o.op);
  ar.pod(o.site);
}

template <class Ar>
void fields(Ar& ar, ChainInsn& c) {
  ar.pod(c.chain.inputs);
  list(ar, c.chain.scalars);
  list(ar, c.chain.steps);
  list(ar, c.chain.outputs);
  if constexpr (Ar::kReading) c.chain.id = new_chain_id();
  list(ar, c.inputs);
  list(ar, c.scalars);
  list(ar, c.outputs);
  list(ar, c.step_sites);
  list(ar, c.loads);
  list(ar, c.stores);
}

std::vector<int64_t> extents_of(const std::vector<ir::Dim>& dims) {
  std::vector<int64_t> out;
  for (const auto& d : dims) out.push_back(d.value);
  return out;
}

std::vector<ir::Dim> dims_of(const std::vector<int64_t>& extents) {
  std::vector<ir::Dim> out(extents.size());
  for (size_t i = 0; i < extents.size(); ++i) out[i].value = extents[i];
  return out;
}

/// Run-time facts of a parameter's type: extents (dynamic ones as -1), element type, where it lives, how it
/// is stored.
template <class Ar>
void fields(Ar& ar, ir::TypePtr& t) {
  auto copy = t ? *t : ir::Type{};
  ar.pod(copy.kind);
  ar.pod(copy.dtype);
  ar.pod(copy.place);
  ar.pod(copy.layout);
  std::vector<int64_t> extents = extents_of(copy.shape), strides;
  if (copy.tensor_view) strides = extents_of(copy.tensor_view->stride);
  list(ar, extents);
  list(ar, strides);
  if constexpr (Ar::kReading) {
    copy.shape = dims_of(extents);
    if (!strides.empty()) {
      auto view = std::make_shared<ir::TensorView>();
      view->stride = dims_of(strides);
      view->layout = copy.layout;
      copy.tensor_view = std::move(view);
    }
    t = std::make_shared<const ir::Type>(std::move(copy));
  }
}

template <class Ar>
void fields(Ar& ar, ParamInfo& p) {
  ar.text(p.name);
  fields(ar, p.reg);
  fields(ar, p.type);
  ar.pod(p.declared);
  ar.pod(p.effective);
  ar.pod(p.remote_target);
  fields(ar, p.span);
}

template <class Ar>
void fields(Ar& ar, SymbolBinding& b) {
  ar.pod(b.reg);
  ar.pod(b.param);
  ar.pod(b.axis);
  ar.pod(b.valid);
  ar.pod(b.divide);
  ar.text(b.name);
  const size_t n = ar.count(b.others.size());
  if constexpr (Ar::kReading) b.others.resize(n);
  for (auto& [param, axis] : b.others) {
    ar.pod(param);
    ar.pod(axis);
  }
  ar.pod(b.used_as_value);
}

template <class Ar>
void fields(Ar& ar, FunctionCode& f) {
  ar.text(f.name);
  ar.pod(f.type);
  ar.pod(f.level);
  ar.pod(f.role);
  ar.pod(f.core);
  list(ar, f.params);
  list(ar, f.symbols);
  ar.pod(f.scalar_count);
  ar.pod(f.view_count);
  ar.pod(f.array_count);
  list(ar, f.code);
  list(ar, f.pool);
  list(ar, f.ops);
  list(ar, f.calls);
  list(ar, f.creates);
  list(ar, f.lanes);
  list(ar, f.chains);
  list(ar, f.sites);
  list(ar, f.results);
  list(ar, f.result_params);
  ar.pod(f.auto_scope);
  ar.pod(f.dual_aiv);
  ar.pod(f.host_callable);
  ar.pod(f.requires_binding);
  fields(ar, f.span);
}

template <class Ar>
void fields(Ar& ar, Diagnostic& d) {
  ar.pod(d.cls);
  ar.pod(d.severity);
  ar.text(d.id);
  ar.text(d.title);
  ar.text(d.message);
  fields(ar, d.span);
  ar.text(d.hint);
}

template <class Ar>
void fields(Ar& ar, ir::BakedScalar& b) {
  ar.pod(b.param);
  ar.pod(b.int_value);
  ar.pod(b.float_value);
}

template <class Ar>
void fields(Ar& ar, Program& p) {
  ar.text(p.name);
  ar.pod(p.arch);
  list(ar, p.functions);
  ar.pod(p.entry);
  list(ar, p.entries);
  list(ar, p.baked);
  list(ar, p.findings);
}

template <class Ar>
void fields(Ar& ar, std::string& s) {
  ar.text(s);
}

template <class Ar, class T>
void item(Ar& ar, T& v) {
  if constexpr (std::is_arithmetic_v<T> || std::is_enum_v<T>) {
    ar.pod(v);
  } else {
    poll();
    fields(ar, v);
  }
}

template <class Ar>
void write_files(Ar& ar, std::vector<std::shared_ptr<const SourceFile>>& files) {
  const size_t n = ar.count(files.size());
  for (size_t i = 0; i < n; ++i) {
    SourceFile f;
    if constexpr (!Ar::kReading) f = *files[i];
    ar.text(f.path);
    ar.pod(f.first_line);
    list(ar, f.lines);
    if constexpr (Ar::kReading) files.push_back(std::make_shared<const SourceFile>(std::move(f)));
  }
}

// ------------------------------------------------------------------ validation

struct Bounds {
  const FunctionCode& f;
  const Program& p;

  void reg(const Reg& r) const {
    const int32_t n = r.cls == RegClass::kScalar  ? f.scalar_count
                      : r.cls == RegClass::kView  ? f.view_count
                      : r.cls == RegClass::kArray ? f.array_count
                      : r.cls == RegClass::kNone  ? INT32_MAX
                                                  : -1;
    if (r.cls != RegClass::kNone && (r.index < 0 || r.index >= n)) damaged("a register is out of range");
  }
  void regs(const std::vector<Reg>& v) const {
    for (const Reg& r : v) reg(r);
  }
  void scalar(int32_t i) const {
    if (i < 0 || i >= f.scalar_count) damaged("a scalar register is out of range");
  }
  void view(int32_t i) const {
    if (i < 0 || i >= f.view_count) damaged("a view register is out of range");
  }
  void array(int32_t i) const {
    if (i < 0 || i >= f.array_count) damaged("an array register is out of range");
  }
  template <class T>
  void index(int32_t i, const std::vector<T>& v) const {
    if (i < 0 || i >= static_cast<int32_t>(v.size())) damaged("a table index is out of range");
  }
  void target(int32_t pc) const { index(pc, f.code); }

  void insn(const Insn& in) const {
    if (in.site >= static_cast<int32_t>(f.sites.size())) damaged("a site is out of range");
    switch (in.op) {
      case Opcode::kNop:
      case Opcode::kReturn:
      case Opcode::kScopeBegin:
      case Opcode::kScopeEnd:
        return;
      case Opcode::kConst:
        scalar(in.dst);
        return index(in.a, f.pool);
      case Opcode::kMoveS:
      case Opcode::kCast:
        scalar(in.dst);
        return scalar(in.a);
      case Opcode::kRangeCheck:
      case Opcode::kForCheck:
        return scalar(in.a);
      case Opcode::kMoveV:
        view(in.dst);
        return view(in.a);
      case Opcode::kRelease:
        return view(in.a);
      case Opcode::kMoveA:
      case Opcode::kShareA:
        array(in.dst);
        return array(in.a);
      case Opcode::kScalar:
        scalar(in.dst);
        scalar(in.a);
        if (in.b >= 0) scalar(in.b);
        return;
      case Opcode::kJump:
        return target(in.a);
      case Opcode::kBranchFalse:
        scalar(in.a);
        return target(in.b);
      case Opcode::kForTest:
        scalar(in.a);
        scalar(in.b);
        scalar(in.c);
        return target(in.dst);
      case Opcode::kOp:
        return index(in.a, f.ops);
      case Opcode::kCall:
        return index(in.a, f.calls);
      case Opcode::kDim:
      case Opcode::kValid:
        scalar(in.dst);
        view(in.a);
        if (in.b < 0 || in.b >= kMaxRank) damaged("an axis is out of range");
        return;
      case Opcode::kArrayNew:
        if (in.a < 0) damaged("a negative extent");
        return array(in.dst);
      case Opcode::kArrayGet:
        scalar(in.dst);
        array(in.a);
        return scalar(in.b);
      case Opcode::kArraySet:
        array(in.dst);
        scalar(in.a);
        return scalar(in.b);
      case Opcode::kCreate:
        view(in.dst);
        return index(in.a, f.creates);
      case Opcode::kLanes:
        return index(in.a, f.lanes);
      case Opcode::kChain:
        return index(in.a, f.chains);
    }
    damaged("an unknown instruction");
  }

  void check() const {
    if (f.scalar_count < 0 || f.view_count < 0 || f.array_count < 0 || f.code.empty())
      damaged("an empty function");
    if (f.code.back().op != Opcode::kReturn) damaged("a function does not end");
    for (const auto& in : f.code) insn(in);
    for (const auto& o : f.ops) {
      if (o.op >= ir::OpId::kCount) damaged("an unknown operation");
      for (const auto& x : o.operands) {
        if (x.kind == Operand::Kind::kReg) reg(x.reg);
        regs(x.list);
      }
      regs(o.results);
    }
    for (const auto& c : f.calls) {
      index(c.callee, p.functions);
      regs(c.args);
      regs(c.results);
      regs(c.deps);
      regs(c.predicate_index);
      for (const Reg& r : {c.task, c.core_num, c.device, c.predicate_tensor}) reg(r);
      if (c.args.size() != p.functions[static_cast<size_t>(c.callee)].params.size())
        damaged("a call's argument count");
    }
    for (const auto& c : f.creates) regs(c.shape);
    for (const auto& l : f.lanes) {
      target(l.begin);
      target(l.end);
      scalar(l.lane_reg);
      for (const auto& j : l.joins) {
        view(j.lane_view);
        view(j.parent_view);
      }
    }
    for (const auto& c : f.chains) {
      regs(c.inputs);
      regs(c.scalars);
      regs(c.outputs);
      const auto values = c.chain.inputs + static_cast<int32_t>(c.chain.steps.size());
      if (c.inputs.size() != static_cast<size_t>(c.chain.inputs) ||
          c.scalars.size() != c.chain.scalars.size() || c.outputs.size() != c.chain.outputs.size() ||
          c.step_sites.size() != c.chain.steps.size() ||
          std::max({c.inputs.size(), c.scalars.size(), c.outputs.size()}) > kMaxChainOperands) {
        damaged("a chain's operands");
      }
      int32_t defined = c.chain.inputs;
      for (const auto& step : c.chain.steps) {
        if (step.op >= ir::OpId::kCount || step.lhs < 0 || step.lhs >= defined || step.rhs >= defined ||
            step.scalar >= static_cast<int32_t>(c.scalars.size())) {
          damaged("a chain's step");
        }
        ++defined;
      }
      for (const int32_t o : c.chain.outputs) {
        if (o < c.chain.inputs || o >= values) damaged("a chain's output");
      }
      for (const auto& o : c.loads) {
        index(o.value, c.inputs);
        index(o.op, f.ops);
        if (f.ops[static_cast<size_t>(o.op)].op != ir::OpId::k_load) damaged("a chain's load");
      }
      for (const auto& o : c.stores) {
        index(o.value, c.outputs);
        index(o.op, f.ops);
        const ir::OpId op = f.ops[static_cast<size_t>(o.op)].op;
        if (op != ir::OpId::k_store && op != ir::OpId::k_assemble) damaged("a chain's store");
      }
      const auto site = [&](int32_t i) {
        if (i >= static_cast<int32_t>(f.sites.size())) damaged("a site is out of range");
      };
      for (const auto& o : c.loads) site(o.site);
      for (const auto& o : c.stores) site(o.site);
      for (const int32_t i : c.step_sites) site(i);
    }
    for (const auto& q : f.params) reg(q.reg);
    for (const auto& b : f.symbols) {
      scalar(b.reg);
      index(b.param, f.params);
      if (b.axis < 0 || b.axis >= kMaxRank || b.divide <= 0) damaged("a symbol's axis");
      for (const auto& [param, axis] : b.others) {
        index(param, f.params);
        if (axis < 0 || axis >= kMaxRank) damaged("a symbol's axis");
      }
    }
    regs(f.results);
  }
};

}  // namespace

std::string save(const Program& program) {
  Writer body;
  Program copy = program;
  fields(body, copy);
  Writer head;
  head.out.assign(kMagic, sizeof(kMagic));
  uint32_t version = kVersion;
  head.pod(version);
  uint32_t ops = operations();
  head.pod(ops);
  Writer files;
  write_files(files, body.files);
  const std::string rest = files.out + body.out;
  uint64_t check = checksum(rest);
  head.pod(check);
  return head.out + rest;
}

ProgramPtr load(const std::string& bytes) {
  Reader in(bytes);
  char magic[8];
  in.pod(magic);
  if (std::memcmp(magic, kMagic, sizeof(kMagic)) != 0) damaged("not a program");
  uint32_t version = 0;
  uint32_t ops = 0;
  in.pod(version);
  in.pod(ops);
  if (version != kVersion) damaged("format " + std::to_string(version));
  if (ops != operations()) damaged("another table of operations");
  uint64_t check = 0;
  in.pod(check);
  if (check != checksum(in.rest())) damaged("the checksum is wrong");
  std::vector<std::shared_ptr<const SourceFile>> files;
  write_files(in, files);
  in.files = std::move(files);
  auto program = std::make_shared<Program>();
  fields(in, *program);
  if (!in.at_end()) damaged("bytes after the end");
  for (const auto& f : program->functions) Bounds{f, *program}.check();
  for (auto& f : program->functions) find_direct(f);
  const auto n = static_cast<int32_t>(program->functions.size());
  if (program->entry >= n) damaged("the entry is out of range");
  for (const int32_t e : program->entries) {
    if (e < 0 || e >= n) damaged("the entry is out of range");
  }
  return program;
}

}  // namespace pypto::vm
