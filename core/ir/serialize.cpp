// SPDX-License-Identifier: Apache-2.0
#include <bit>
#include <cstring>
#include <tuple>
#include <type_traits>
#include <unordered_map>
#include <utility>

#include "core/base/poll.h"
#include "core/ir/print.h"

/// The binary form (04 SER-9): a header with version, length and checksum, then one stream in which every
/// shared object is written where it is met first and referred to by number afterwards. One description of
/// each record serves both directions, so that they cannot disagree.
namespace pypto::ir {
namespace {

constexpr char kMagic[8] = {'P', 'Y', 'P', 'T', 'O', 'I', 'R', '\n'};
constexpr uint32_t kVersion = 1;
constexpr int kMaxDepth = 4000;

[[noreturn]] void damaged(const std::string& why) {
  fail(ErrorClass::kValueError, "The bytes are no saved program: " + why, {},
       "save the program again with this version");
}

uint64_t checksum(std::string_view bytes) {
  uint64_t h = 1469598103934665603ull;
  for (const char c : bytes) h = (h ^ static_cast<unsigned char>(c)) * 1099511628211ull;
  return h;
}

/// Objects that several places share, by type.
using Shared = std::tuple<SourceFile, Type, Storage, TensorView, TileView, MemRef, Expr, CallInfo, Var, Stmt,
                          ScopeInfo, Function>;

template <class Tuple>
struct WriteTables;
template <class... T>
struct WriteTables<std::tuple<T...>> {
  std::tuple<std::unordered_map<const T*, uint64_t>...> maps;
  template <class U>
  auto& of() {
    return std::get<std::unordered_map<const U*, uint64_t>>(maps);
  }
};

template <class Tuple>
struct ReadTables;
template <class T>
struct ReadObject {
  std::shared_ptr<T> object;
  bool complete = false;  ///< an object must not refer to itself on the way to itself
};
template <class... T>
struct ReadTables<std::tuple<T...>> {
  std::tuple<std::vector<ReadObject<T>>...> lists;
  template <class U>
  auto& of() {
    return std::get<std::vector<ReadObject<U>>>(lists);
  }
};

class Writer {
 public:
  static constexpr bool kReading = false;
  std::string out;
  WriteTables<Shared> tables;
  std::unordered_map<std::string, uint64_t> strings;
  int depth = 0;

  void varint(uint64_t& v) {
    uint64_t rest = v;
    while (rest >= 0x80) {
      out += static_cast<char>(rest | 0x80);
      rest >>= 7;
    }
    out += static_cast<char>(rest);
  }
  void text(std::string& s) {
    const auto [it, added] = strings.try_emplace(s, strings.size());
    uint64_t code = added ? 0 : it->second + 1;
    varint(code);
    if (!added) return;
    uint64_t size = s.size();
    varint(size);
    out += s;
  }
};

class Reader {
 public:
  static constexpr bool kReading = true;
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}
  ReadTables<Shared> tables;
  std::vector<std::string> strings;
  int depth = 0;

  void varint(uint64_t& v) {
    v = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (at_ >= bytes_.size()) damaged("they end too early");
      const auto c = static_cast<unsigned char>(bytes_[at_++]);
      v |= static_cast<uint64_t>(c & 0x7f) << shift;
      if (!(c & 0x80)) return;
    }
    damaged("a number does not end");
  }
  void text(std::string& s) {
    uint64_t code = 0;
    varint(code);
    if (code > 0) {
      if (code > strings.size()) damaged("a text that was never written");
      s = strings[code - 1];
      return;
    }
    uint64_t size = 0;
    varint(size);
    if (size > remaining()) damaged("they end too early");
    s.assign(bytes_.substr(at_, size));
    at_ += size;
    strings.push_back(s);
  }
  size_t remaining() const { return bytes_.size() - at_; }

 private:
  std::string_view bytes_;
  size_t at_ = 0;
};

// ---------------------------------------------------------------- plain values

template <class A>
void io(A& a, uint64_t& v) {
  a.varint(v);
}
template <class A>
void io(A& a, int64_t& v) {
  uint64_t zigzag = (static_cast<uint64_t>(v) << 1) ^ static_cast<uint64_t>(v >> 63);
  a.varint(zigzag);
  if constexpr (A::kReading) v = static_cast<int64_t>(zigzag >> 1) ^ -static_cast<int64_t>(zigzag & 1);
}
template <class A>
void io(A& a, int& v) {
  int64_t wide = v;
  io(a, wide);
  if constexpr (A::kReading) {
    if (wide < INT32_MIN || wide > INT32_MAX) damaged("a number is out of range");
    v = static_cast<int>(wide);
  }
}
template <class A>
void io(A& a, bool& v) {
  uint64_t bit = v ? 1 : 0;
  a.varint(bit);
  if constexpr (A::kReading) {
    if (bit > 1) damaged("a flag is neither set nor clear");
    v = bit != 0;
  }
}
template <class A>
void io(A& a, double& v) {
  uint64_t bits = std::bit_cast<uint64_t>(v);
  a.varint(bits);
  if constexpr (A::kReading) v = std::bit_cast<double>(bits);
}
template <class A>
void io(A& a, std::string& v) {
  a.text(v);
}
template <class A>
void io(A& a, DType& v) {
  uint64_t code = static_cast<uint8_t>(v);
  a.varint(code);
  if constexpr (A::kReading) {
    if (code != 0xff && (code > 0xff || !dtype_from_code(static_cast<int>(code))))
      damaged("an unknown dtype");
    v = static_cast<DType>(code);
  }
}
/// Enumerations from `first` to `last`.
template <class A, class E>
void io_enum(A& a, E& v, E last, E first = static_cast<E>(0)) {
  auto wide = static_cast<int64_t>(v);
  io(a, wide);
  if constexpr (A::kReading) {
    if (wide < static_cast<int64_t>(first) || wide > static_cast<int64_t>(last))
      damaged("an unknown enumerator");
    v = static_cast<E>(wide);
  }
}

template <class A, class T>
void io_ref(A& a, std::shared_ptr<T>& p);

// Records, declared before the containers that hold them.
template <class A>
void io(A& a, SourceFile& v);
template <class A>
void io(A& a, Span& v);
template <class A>
void io(A& a, Dim& v);
template <class A>
void io(A& a, Storage& v);
template <class A>
void io(A& a, TensorView& v);
template <class A>
void io(A& a, TileView& v);
template <class A>
void io(A& a, MemRef& v);
template <class A>
void io(A& a, Type& v);
template <class A>
void io(A& a, AttrMap& v);
template <class A>
void io(A& a, CallInfo& v);
template <class A>
void io(A& a, Expr& v);
template <class A>
void io(A& a, Var& v);
template <class A>
void io(A& a, Carry& v);
template <class A>
void io(A& a, ScopeInfo& v);
template <class A>
void io(A& a, Stmt& v);
template <class A>
void io(A& a, FunctionAttr& v);
template <class A>
void io(A& a, Function& v);
template <class A>
void io(A& a, BakedScalar& v);
template <class A>
void io(A& a, DiagnosticNote& v);
template <class A>
void io(A& a, Diagnostic& v);
template <class A>
void io(A& a, ParamDirection& v) {
  io_enum(a, v, ParamDirection::kInOut);
}
template <class A>
void io(A& a, TileLayout& v) {
  io_enum(a, v, TileLayout::kColMajor);
}

template <class A, class T>
void io(A& a, std::shared_ptr<T>& p) {
  io_ref(a, p);
}
template <class A, class T, class U>
void io(A& a, std::pair<T, U>& p) {
  io(a, p.first);
  io(a, p.second);
}
template <class A, class T>
void io(A& a, std::optional<T>& v) {
  bool has = v.has_value();
  io(a, has);
  if (!has) {
    v.reset();
    return;
  }
  if constexpr (A::kReading) v.emplace();
  io(a, *v);
}
template <class A, class T>
void io(A& a, std::vector<T>& list) {
  uint64_t size = list.size();
  a.varint(size);
  if constexpr (A::kReading) {
    if (size > a.remaining()) damaged("a list is longer than the file");
    list.resize(size);
  }
  for (auto& x : list) io(a, x);
}
template <class A>
void io(A& a, std::vector<bool>& list) {
  uint64_t size = list.size();
  a.varint(size);
  if constexpr (A::kReading) {
    if (size > a.remaining()) damaged("a list is longer than the file");
    list.resize(size);
  }
  for (size_t i = 0; i < list.size(); ++i) {
    bool bit = list[i];
    io(a, bit);
    list[i] = bit;
  }
}

template <class A, class T>
void io_ref(A& a, std::shared_ptr<T>& p) {
  using Plain = std::remove_const_t<T>;
  if (++a.depth > kMaxDepth) damaged("it is nested too deeply");
  if constexpr (A::kReading) {
    auto& table = a.tables.template of<Plain>();
    uint64_t code = 0;
    a.varint(code);
    if (code == 0) {
      p = nullptr;
    } else if (code == 1) {
      auto fresh = std::make_shared<Plain>();
      const size_t index = table.size();
      table.push_back({fresh, false});
      p = fresh;
      io(a, *fresh);
      table[index].complete = true;
    } else {
      if (code - 2 >= table.size()) damaged("a reference to what was never written");
      if (!table[code - 2].complete) damaged("an object that contains itself");
      p = table[code - 2].object;
    }
  } else {
    auto& table = a.tables.template of<Plain>();
    uint64_t code = 0;
    if (!p) {
      a.varint(code);
    } else if (const auto it = table.find(p.get()); it != table.end()) {
      code = it->second + 2;
      a.varint(code);
    } else {
      code = 1;
      a.varint(code);
      table.emplace(p.get(), table.size());
      io(a, const_cast<Plain&>(*p));  // the writer only reads
    }
  }
  --a.depth;
}

// ---------------------------------------------------------------- records

template <class A>
void io(A& a, SourceFile& v) {
  io(a, v.path);
  io(a, v.first_line);
  io(a, v.lines);
}
template <class A>
void io(A& a, Span& v) {
  io(a, v.file);
  io(a, v.line);
  io(a, v.column);
  io(a, v.end_line);
  io(a, v.end_column);
}
template <class A>
void io(A& a, Dim& v) {
  io(a, v.value);
  io(a, v.expr);
}
template <class A>
void io(A& a, Storage& v) {
  io(a, v.name);
  io(a, v.param);
  io(a, v.created);
  io(a, v.needs_global);
  io(a, v.written);
  io(a, v.region_local);
  io(a, v.region);
}
template <class A>
void io(A& a, TensorView& v) {
  io(a, v.valid_shape);
  io(a, v.stride);
  io_enum(a, v.layout, TensorLayout::kMxBNN);
  io_enum(a, v.pad, PadValue::kMin);
}
template <class A>
void io(A& a, TileView& v) {
  io(a, v.valid_shape);
  io(a, v.blayout);
  io(a, v.slayout);
  io(a, v.fractal);
  io_enum(a, v.pad, PadValue::kMin);
  io(a, v.has_pad);
  io_enum(a, v.compact, CompactMode::kNormal);
  io(a, v.stride);
  io(a, v.start_offset);
}
template <class A>
void io(A& a, MemRef& v) {
  io(a, v.name);
  io(a, v.slots);
  io(a, v.slot);
  io(a, v.offset);
  io(a, v.size);
}
template <class A>
void io(A& a, Type& v) {
  io_enum(a, v.kind, TypeKind::kString);
  io(a, v.dtype);
  io(a, v.shape);
  io(a, v.valid);
  io_enum(a, v.place, TensorPlace::kOnChip);
  io_enum(a, v.layout, TensorLayout::kMxBNN);
  io(a, v.tensor_view);
  io_enum(a, v.space, MemorySpace::kRightScale, MemorySpace::kUnset);
  io(a, v.tile_view);
  io(a, v.memref);
  io_enum(a, v.pad, PadValue::kMin);
  io(a, v.acc_dtype);
  io(a, v.elements);
  io(a, v.storage);
}
template <class A>
void io(A& a, AttrMap& v) {
  uint64_t size = v.entries().size();
  a.varint(size);
  for (uint64_t k = 0; k < size; ++k) {
    AttrKey key{};
    AttrValue value;
    if constexpr (!A::kReading) std::tie(key, value) = v.entries()[k];
    io_enum(a, key, static_cast<AttrKey>(static_cast<int>(AttrKey::kCount) - 1));
    uint64_t alternative = value.index();
    a.varint(alternative);
    if constexpr (A::kReading) {
      if (alternative == 0)
        value = int64_t{0};
      else if (alternative == 1)
        value = 0.0;
      else if (alternative == 2)
        value = std::string();
      else if (alternative == 3)
        value = std::vector<int64_t>();
      else
        damaged("an attribute of an unknown kind");
    }
    std::visit([&](auto& x) { io(a, x); }, value);
    if constexpr (A::kReading) v.set(key, std::move(value));
  }
}
template <class A>
void io(A& a, CallInfo& v) {
  io(a, v.callee);
  io(a, v.submit);
  io(a, v.spmd);
  io(a, v.core_num);
  io(a, v.sync_start);
  io(a, v.has_deps);
  io(a, v.deps);
  io(a, v.device);
  io(a, v.predicate);
  io(a, v.allow_early_resolve);
  io(a, v.no_dep);
  io(a, v.dumps);
  io(a, v.flat_result);
}
template <class A>
void io(A& a, Expr& v) {
  poll();
  io_enum(a, v.kind, ExprKind::kDType);
  io(a, v.type);
  io(a, v.span);
  io(a, v.int_value);
  io(a, v.float_value);
  io(a, v.untyped);
  io(a, v.text);
  io(a, v.var);
  io_enum(a, v.op, static_cast<OpId>(kOpCount - 1));
  io(a, v.attrs);
  io(a, v.args);
  io(a, v.call);
  if constexpr (A::kReading) {
    if ((v.kind == ExprKind::kVar && !v.var) || (v.kind == ExprKind::kCall && (!v.call || !v.call->callee)) ||
        (v.kind == ExprKind::kItem && (v.args.size() != 1 || !v.args[0])) || !v.type) {
      damaged("an incomplete expression");
    }
    if (v.kind == ExprKind::kOp) {
      const size_t params = op_params(op_row(v.op), kFormFlat).size();
      if (v.args.size() > params) damaged("an operation with too many operands");
    }
  }
}
template <class A>
void io(A& a, Var& v) {
  poll();
  io(a, v.name);
  io_enum(a, v.kind, VarKind::kTask);
  io(a, v.id);
  io(a, v.span);
  io(a, v.type);
  if constexpr (A::kReading) {
    if (!v.type) damaged("a variable without type");
  }
}
template <class A>
void io(A& a, Carry& v) {
  io(a, v.var);
  io(a, v.init);
  io(a, v.result);
}
template <class A>
void io(A& a, ScopeInfo& v) {
  io_enum(a, v.kind, ScopeKind::kSplitAiv);
  io_enum(a, v.level, Level::kGlobal, Level::kNone);
  io_enum(a, v.role, Role::kSubWorker, Role::kNone);
  io(a, v.name_hint);
  io(a, v.has_split);
  io_enum(a, v.split, SplitMode::kLeftRight);
  io(a, v.slot_num);
  io(a, v.has_deps);
  io(a, v.deps);
  io(a, v.no_dep_args);
  io(a, v.dumps);
  io(a, v.allow_early_resolve);
  io(a, v.windowize);
  io(a, v.task);
  io(a, v.core_num);
  io(a, v.sync_start);
  io(a, v.predicate);
  io(a, v.loop_var);
  io_enum(a, v.mode, SplitMode::kLeftRight);
}
template <class A>
void io(A& a, Stmt& v) {
  poll();
  io_enum(a, v.kind, StmtKind::kComment);
  io(a, v.span);
  io(a, v.targets);
  io(a, v.annotation);
  io(a, v.value);
  io(a, v.values);
  io_enum(a, v.for_kind, ForKind::kPipeline);
  io(a, v.loop_var);
  io(a, v.start);
  io(a, v.stop);
  io(a, v.step);
  io(a, v.stage);
  io(a, v.loop_attrs);
  io(a, v.explicit_carry);
  io(a, v.carries);
  io(a, v.body);
  io(a, v.else_body);
  io(a, v.has_else);
  io(a, v.scope);
  io(a, v.text);
  if constexpr (A::kReading) {
    const bool needs_value =
        v.kind == StmtKind::kAssign || v.kind == StmtKind::kEval || v.kind == StmtKind::kIf;
    if ((needs_value && !v.value) || (v.kind == StmtKind::kScope && !v.scope) ||
        (v.kind == StmtKind::kFor && (!v.loop_var || !v.stop))) {
      damaged("an incomplete statement");
    }
    for (const auto& s : v.body) {
      if (!s) damaged("an incomplete block");
    }
    for (const auto& s : v.else_body) {
      if (!s) damaged("an incomplete block");
    }
  }
}
template <class A>
void io(A& a, FunctionAttr& v) {
  io(a, v.key);
  io(a, v.value);
  io(a, v.int_value);
}
template <class A>
void io(A& a, Function& v) {
  io(a, v.name);
  io_enum(a, v.type, FunctionType::kGraph);
  io_enum(a, v.level, Level::kGlobal, Level::kNone);
  io_enum(a, v.role, Role::kSubWorker, Role::kNone);
  io(a, v.vars);
  io(a, v.params);
  io(a, v.directions);
  io(a, v.effective_directions);
  io(a, v.symbols);
  io(a, v.return_types);
  io(a, v.return_params);
  io(a, v.has_return_annotation);
  io(a, v.body);
  io(a, v.attrs);
  io(a, v.auto_scope);
  io(a, v.strict_ssa);
  io(a, v.span);
  io(a, v.is_sub_worker);
  io(a, v.requires_runtime_binding);
  io(a, v.host_callable);
  io(a, v.uses_cube);
  io(a, v.uses_vector);
  io(a, v.external_source);
  io(a, v.opaque_kernel);
  if constexpr (A::kReading) {
    for (const auto& p : v.params) {
      if (!p) damaged("an incomplete function");
    }
    for (const auto& s : v.body) {
      if (!s) damaged("an incomplete block");
    }
    if (v.directions.size() != v.params.size()) damaged("an incomplete function");
  }
}
template <class A>
void io(A& a, BakedScalar& v) {
  io(a, v.param);
  io(a, v.int_value);
  io(a, v.float_value);
}
template <class A>
void io(A& a, DiagnosticNote& v) {
  io(a, v.text);
  io(a, v.span);
}
template <class A>
void io(A& a, Diagnostic& v) {
  io_enum(a, v.cls, ErrorClass::kInternalError);
  io_enum(a, v.severity, Severity::kError);
  io(a, v.id);
  io(a, v.title);
  io(a, v.message);
  io(a, v.span);
  io(a, v.label);
  io(a, v.hint);
  io(a, v.notes);
}
template <class A>
void io(A& a, Module& v) {
  io(a, v.name);
  io_enum(a, v.arch, Arch::kA5);
  io(a, v.functions);
  io(a, v.warnings);
  io(a, v.codegen_errors);
  io(a, v.baked);
  io(a, v.lowered);
}

// ---------------------------------------------------------------- header

void put(std::string& out, uint64_t v) {
  for (int i = 0; i < 8; ++i) out += static_cast<char>(v >> (8 * i));
}

uint64_t take(std::string_view bytes, size_t at) {
  uint64_t v = 0;
  for (int i = 0; i < 8; ++i)
    v |= static_cast<uint64_t>(static_cast<unsigned char>(bytes[at + static_cast<size_t>(i)])) << (8 * i);
  return v;
}

std::string wrap(char kind, const std::string& payload) {
  std::string out(kMagic, sizeof kMagic);
  put(out, (static_cast<uint64_t>(static_cast<unsigned char>(kind)) << 32) | kVersion);
  put(out, payload.size());
  put(out, checksum(payload));
  return out + payload;
}

std::string_view unwrap(char kind, std::string_view bytes) {
  constexpr size_t kHeader = sizeof kMagic + 24;
  if (bytes.size() < kHeader || std::memcmp(bytes.data(), kMagic, sizeof kMagic) != 0)
    damaged("the header is missing");
  const uint64_t word = take(bytes, sizeof kMagic);
  if (static_cast<uint32_t>(word) != kVersion) {
    damaged("version " + std::to_string(static_cast<uint32_t>(word)) + ", expected " +
            std::to_string(kVersion));
  }
  if (word >> 32 != static_cast<unsigned char>(kind))
    damaged(kind == 'P' ? "they hold a function" : "they hold a program");
  const std::string_view payload = bytes.substr(kHeader);
  if (take(bytes, sizeof kMagic + 8) != payload.size()) damaged("the length is wrong");
  if (take(bytes, sizeof kMagic + 16) != checksum(payload)) damaged("the checksum is wrong");
  return payload;
}

}  // namespace

std::string serialize(const Module& m) {
  Writer w;
  io(w, const_cast<Module&>(m));  // the writer only reads
  return wrap('P', w.out);
}

ModulePtr deserialize_module(const std::string& bytes) {
  Reader r(unwrap('P', bytes));
  auto m = std::make_shared<Module>();
  io(r, *m);
  for (const auto& f : m->functions) {
    if (!f) damaged("an incomplete program");
  }
  if (r.remaining() != 0) damaged("there is more than a program");
  return m;
}

std::string serialize(const Function& f) {
  Writer w;
  // As a reference, so that a function that is met again inside is the same one.
  auto self = std::shared_ptr<Function>(std::shared_ptr<void>(), const_cast<Function*>(&f));
  io(w, self);
  return wrap('F', w.out);
}

FunctionPtr deserialize_function(const std::string& bytes) {
  Reader r(unwrap('F', bytes));
  FunctionPtr f;
  io(r, f);
  if (!f || r.remaining() != 0) damaged("an incomplete function");
  return f;
}

}  // namespace pypto::ir
