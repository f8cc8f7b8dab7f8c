// SPDX-License-Identifier: Apache-2.0
#include "core/ir/infer/typer.h"

#include <algorithm>
#include <cmath>

#include "core/ir/member_text.h"

namespace pypto::ir::infer {
namespace {

constexpr uint32_t kPldForms = kFormPld | kFormPldTensor | kFormPldTile | kFormPldSystem;

std::string number_text(double v) {
  std::string s = std::to_string(v);
  s.erase(s.find_last_not_of('0') + 1);
  if (!s.empty() && s.back() == '.') s += '0';
  return s;
}

/// Whether a literal argument repeats the documented default, which is a no-op wherever it stands (02 O-111).
bool is_default(const Expr& e, const OpParam& p) {
  if (!p.has_default) return false;
  const std::string& d = p.default_text;
  switch (e.kind) {
    case ExprKind::kNone:
      return d == "None";
    case ExprKind::kString:
      return d == "\"" + e.text + "\"";
    case ExprKind::kInt:
      if (!e.text.empty()) return e.text == d;
      if (e.type->dtype == DType::kBool) return d == (e.int_value ? "True" : "False");
      return d == std::to_string(e.int_value);
    default:
      return false;
  }
}

}  // namespace

Typer::Typer(InferContext& context_in, const OpCallSite& call)
    : context(context_in), row(call.row), form(call.form), span(call.span), args(call.args) {
  const auto& params = op_params(*row, kFormFlat);
  args.resize(params.size());
  for (size_t i = 0; i < args.size(); ++i) {
    // None stands for "not given" where the signature says so; a signal must not be None (03 C-5).
    const bool none = args[i] && args[i]->kind == ExprKind::kNone && params[i].default_text == "None";
    if (none && row->id != OpId::k_allreduce) args[i] = nullptr;
    if (!args[i] && !params[i].has_default) {
      type_error("missing required argument '" + param(static_cast<int>(i)) + "'");
    }
  }
}

std::string Typer::name() const {
  const std::string n = row->name;
  if (row->forms & kPldForms) {
    if (row->forms & kFormPldTensor) return "pld.tensor." + n;
    if (row->forms & kFormPldTile) return "pld.tile." + n;
    return "pld.system." + n;
  }
  const bool tensor = row->forms & kFormTensor;
  const bool tile = row->forms & kFormTile;
  if (level == OperandLevel::kTile || (tile && !tensor)) return "tile." + n;
  if (level == OperandLevel::kTensor || (tensor && !tile)) return "tensor." + n;
  if (row->forms & kFormSystem) return "system." + n;
  if (row->forms & kFormArray) return "array." + n;
  if (row->forms & kFormPrefetch) return "prefetch." + n;
  if (form == kFormTensor) return "tensor." + n;
  if (form == kFormTile) return "tile." + n;
  return "pl." + n;
}

std::string Typer::param(int i) const {
  const auto& params = op_params(*row, form);
  const auto& flat = op_params(*row, kFormFlat);
  const auto at = static_cast<size_t>(i);
  if (at < flat.size()) {
    for (const auto& p : params) {
      if (p.name == flat[at].name) return p.name;
    }
  }
  if (at < params.size()) return params[at].name;
  return at < flat.size() ? flat[at].name : "argument " + std::to_string(i);
}

std::string Typer::got(int i) const {
  const ExprPtr& e = args[static_cast<size_t>(i)];
  if (!e) return "nothing";
  switch (e->kind) {
    case ExprKind::kInt:
      if (!e->text.empty()) return "pl." + e->text;
      if (e->type->dtype == DType::kBool) return e->int_value ? "True" : "False";
      return std::to_string(e->int_value);
    case ExprKind::kFloat:
      return number_text(e->float_value);
    case ExprKind::kNone:
      return "None";
    case ExprKind::kString:
      return "\"" + e->text + "\"";
    case ExprKind::kDType: {
      const auto d = dtype_from_code(static_cast<int>(e->int_value));
      return d ? std::string("the dtype pl.") + dtype_info(*d).member : "a dtype";
    }
    case ExprKind::kTuple:
      return "a list of " + std::to_string(e->args.size()) + " entries";
    default:
      break;
  }
  return e->type ? type_text(*e->type) : "a value without a type";
}

namespace {

bool is_collective(OpId id) {
  switch (id) {
    case OpId::k_barrier:
    case OpId::k_allreduce:
    case OpId::k_broadcast:
    case OpId::k_allgather:
    case OpId::k_reduce_scatter:
    case OpId::k_all_to_all:
    case OpId::k_all_to_all_v:
      return true;
    default:
      return false;
  }
}

}  // namespace

void Typer::error(ErrorClass cls, const std::string& what, const std::string& hint,
                  const std::string& id) const {
  Diagnostic d;
  d.cls = cls;
  d.id = id.empty() && is_collective(row->id) ? "X-30" : id;
  d.message = name() + ": " + what;
  d.hint = hint;
  throw Failure(std::move(d));
}

void Typer::type_error(const std::string& what, const std::string& hint, const std::string& id) const {
  error(ErrorClass::kTypeError, what, hint, id);
}

void Typer::value_error(const std::string& what, const std::string& hint, const std::string& id) const {
  error(ErrorClass::kValueError, what, hint, id);
}

void Typer::bad(int i, const std::string& expected, const std::string& hint, const std::string& id) const {
  type_error("argument '" + param(i) + "' must be " + expected + ", got " + got(i), hint, id);
}

void Typer::warn(const std::string& what, const std::string& hint, const std::string& id) const {
  if (!context.warn) return;
  Diagnostic d;
  d.severity = Severity::kWarning;
  d.id = id;
  d.message = name() + ": " + what;
  d.hint = hint;
  d.span = span;
  context.warn(std::move(d));
}

void Typer::require_a5(const std::string& what) const {
  if (!a5()) {
    value_error(what + " is not supported on the 'a2a3' backend",
                "compile for the a5 family, or use another operation");
  }
}

// ---- operands

const Type& Typer::type(int i) const {
  static const Type none;
  const ExprPtr& e = args[static_cast<size_t>(i)];
  return e && e->type ? *e->type : none;
}

std::string kind_text(const Type& t) {
  if (t.is_tile()) return "Tile";
  if (t.is_window()) return "DistributedTensor";
  if (!t.is_tensor()) return type_text(t);
  return t.place == TensorPlace::kOnChip ? "on-chip Tensor" : "Tensor in global memory";
}

bool Typer::honoured(int i, OpForm level_form) const {
  const auto& flat = op_params(*row, kFormFlat);
  const auto& params = op_params(*row, level_form);
  const auto at = static_cast<size_t>(i);
  const auto named = [](const std::vector<OpParam>& list, const std::string& n) {
    return std::any_of(list.begin(), list.end(), [&](const OpParam& p) { return p.name == n; });
  };
  if (named(params, flat[at].name)) return true;
  // Another name for the same position counts only when that name is no other parameter of the flat form.
  return at < params.size() && !named(flat, params[at].name);
}

void Typer::check_keywords() {
  if (level != OperandLevel::kTensor && level != OperandLevel::kTile) return;
  const OpForm level_form = tile_level() ? kFormTile : kFormTensor;
  if (!(row->forms & level_form)) return;
  const auto& flat = op_params(*row, kFormFlat);
  const auto& params = op_params(*row, level_form);
  for (int i = 0; i < static_cast<int>(args.size()); ++i) {
    if (honoured(i, level_form)) {
      const auto at = static_cast<size_t>(i);
      if (!has(i) && at < params.size() && !params[at].has_default &&
          (params[at].name == flat[at].name || flat[at].has_default)) {
        type_error("missing required argument '" + params[at].name + "' for " +
                   (tile_level() ? "Tile" : "Tensor") + " operands");
      }
      continue;
    }
    if (!has(i)) continue;
    if (is_default(*arg(i), flat[static_cast<size_t>(i)])) {
      drop(i);
      continue;
    }
    type_error("keyword '" + flat[static_cast<size_t>(i)].name + "' is not supported on " +
                   (tile_level() ? "Tile" : "Tensor") + " operands",
               "remove '" + flat[static_cast<size_t>(i)].name + "'");
  }
}

void Typer::dispatch(std::initializer_list<int> operands) {
  int tensor_at = -1, tile_at = -1;
  for (const int i : operands) {
    if (is_tensor(i) && tensor_at < 0) tensor_at = i;
    if (is_tile(i) && tile_at < 0) tile_at = i;
  }
  if (tensor_at >= 0 && tile_at >= 0) {
    type_error("cannot mix Tensor and Tile arguments: '" + param(tensor_at) + "' is a " +
                   kind_text(type(tensor_at)) + " (" + type_text(type(tensor_at)) + "), '" + param(tile_at) +
                   "' is a Tile (" + type_text(type(tile_at)) + ")",
               type(tensor_at).place == TensorPlace::kOnChip
                   ? "use one kind: keep tensor-level values, or load all operands with pl.load"
                   : "load the Tensor into a Tile first: pl.load(" + param(tensor_at) + ", offsets, shapes)");
  }
  if (tensor_at < 0 && tile_at < 0) bad(*operands.begin(), "a Tensor or Tile");
  if (form == kFormTile && tensor_at >= 0) {
    level = OperandLevel::kTile;
    static_cast<void>(tile(tensor_at));
  }
  level = tile_at >= 0 ? OperandLevel::kTile : OperandLevel::kTensor;
  if (form == kFormTensor && tile_at >= 0) {
    type_error("argument '" + param(tile_at) + "' is a Tile (" + type_text(type(tile_at)) + "); pl.tensor." +
                   row->name + " takes Tensors",
               std::string("use pl.tile.") + row->name + " or pl." + row->name);
  }
  check_keywords();
}

void Typer::tile_only(std::initializer_list<int> operands) {
  level = OperandLevel::kTile;
  for (const int i : operands) static_cast<void>(tile(i));
}

void Typer::tensor_only(std::initializer_list<int> operands) {
  level = OperandLevel::kTensor;
  for (const int i : operands) static_cast<void>(tensor(i));
}

const Type& Typer::array(int i) const {
  if (level == OperandLevel::kTile) return tile(i);
  if (level == OperandLevel::kTensor) return tensor(i);
  if (!type(i).is_array_like()) bad(i, "a Tensor or Tile");
  return type(i);
}

const Type& Typer::tile(int i) const {
  const Type& t = type(i);
  if (t.is_tile()) return t;
  if (!t.is_tensor()) bad(i, "a Tile");
  const std::string what =
      "argument '" + param(i) + "' must be a Tile, got a " + kind_text(t) + " (" + type_text(t) + ")";
  if (t.place == TensorPlace::kOnChip) {
    type_error(what,
               "an on-chip Tensor has no tile form: use the tensor-level operation, or make the value with "
               "pl.load and tile operations");
  }
  type_error(what, "load it first: pl.load(" + param(i) + ", offsets, shapes)");
}

const Type& Typer::tensor(int i) const {
  const Type& t = type(i);
  if (t.is_tensor()) return t;
  if (!t.is_tile()) bad(i, "a Tensor");
  type_error("argument '" + param(i) + "' must be a Tensor, got a Tile (" + type_text(t) + ")",
             "use the tile form of the operation, or store the tile into a Tensor with pl.store first");
}

const Type& Typer::global(int i) const {
  const Type& t = tensor(i);
  if (t.place != TensorPlace::kOnChip) return t;
  if (t.storage && t.storage->created) {
    t.storage->needs_global = true;
    return t;
  }
  type_error("argument '" + param(i) +
                 "' must be a Tensor in global memory or a DistributedTensor, got an on-chip Tensor (" +
                 type_text(t) + ")",
             "use the value itself or a slice of it; to write into it use pl.assemble or slice assignment");
}

const Type& Typer::window(int i) const {
  const Type& t = type(i);
  if (t.is_window()) return t;
  bad(i, "a DistributedTensor (window)",
      "annotate the parameter with pld.DistributedTensor[...]; data that peers see "
      "must live in a window",
      "X-3");
}

std::string dtype_list(std::initializer_list<DType> list) {
  std::string out;
  for (const DType d : list) out += (out.empty() ? "" : ", ") + std::string(dtype_info(d).member);
  return out;
}

void Typer::require_dtype(int i, std::initializer_list<DType> accepted, const std::string& hint) const {
  for (const DType d : accepted) {
    if (same_dtype(d, type(i).dtype)) return;
  }
  type_error("argument '" + param(i) + "' has dtype " + std::string(dtype_text(type(i).dtype)) +
                 "; expected one of " + dtype_list(accepted) + (hint.empty() ? "" : "; " + hint),
             hint);
}

void Typer::require_rank(int i, int rank) const {
  if (type(i).rank() == rank) return;
  value_error("argument '" + param(i) + "' must have rank " + std::to_string(rank) + ", got rank " +
                  std::to_string(type(i).rank()) + " (shape " + shape_text(type(i).shape) + ")",
              "reshape it first");
}

void Typer::require_storable(DType d) const {
  if (dtype_bits(d) != 4 || (a5() ? d == DType::kFp4 : d == DType::kInt4)) return;
  value_error("dtype " + std::string(dtype_text(d)) + " is not supported in kernels on the '" + arch_text() +
                  "' platform",
              "use an 8-bit type");
}

void Typer::require_packed_offset(DType d, const std::vector<ExprPtr>& offsets) const {
  if (d != DType::kFp4 || offsets.empty()) return;
  const auto c = const_int(simplify(offsets.back()));
  if (!c || (*c >= 0 && *c % 2 == 0)) return;
  value_error("the last-axis offset of a packed FP4 tensor must be even, got " + std::to_string(*c),
              "two FP4 elements share a byte");
}

void Typer::require_arithmetic(int i) const {
  const DType d = type(i).dtype;
  const bool storage_only = is_float(d) && d != DType::kFp16 && d != DType::kBf16 && d != DType::kFp32;
  if (storage_only) {
    type_error("argument '" + param(i) + "' has dtype " + std::string(dtype_text(d)) +
                   ", which is a storage and cast type; arithmetic on it is not defined",
               "cast it first: pl.cast(x, pl.FP32)");
  }
  require_dtype(i, {DType::kInt8, DType::kInt16, DType::kInt32, DType::kInt64, DType::kUInt8, DType::kUInt16,
                    DType::kUInt32, DType::kUInt64, DType::kFp16, DType::kBf16, DType::kFp32});
}

void Typer::require_same_dtype(int i, int j) const {
  if (same_dtype(type(i).dtype, type(j).dtype)) return;
  type_error("arguments '" + param(i) + "' and '" + param(j) + "' must have the same dtype, got " +
                 std::string(dtype_text(type(i).dtype)) + " and " + std::string(dtype_text(type(j).dtype)),
             "convert one of them with pl.cast");
}

void Typer::require_same_shape(int i, int j) const {
  if (same_static_shape(type(i).shape, type(j).shape)) return;
  value_error("arguments '" + param(i) + "' and '" + param(j) + "' must have the same shape, got " +
              shape_text(type(i).shape) + " and " + shape_text(type(j).shape));
}

DType Typer::promoted(int i, int j) const {
  const DType d = promote(type(i).dtype, type(j).dtype);
  if (d == DType::kNone) {
    type_error("dtypes " + std::string(dtype_text(type(i).dtype)) + " of '" + param(i) + "' and " +
                   std::string(dtype_text(type(j).dtype)) + " of '" + param(j) + "' do not promote",
               "convert one of them with pl.cast");
  }
  return d;
}

// ---- results

ExprPtr Typer::result(TypePtr type_in) const {
  if ((type_in->is_tensor() || type_in->is_tile()) && type_in->static_shape()) {
    std::vector<int64_t> extents;
    for (const auto& d : type_in->shape) extents.push_back(d.value);
    if (packed_bytes(type_in->dtype, extents.data(), extents.size()) >= kMaxBytes) {
      value_error("shape " + shape_text(type_in->shape) + " of " + std::string(dtype_text(type_in->dtype)) +
                  " has more bytes than any memory");
    }
  }
  return op_expr(row->id, args, attrs, std::move(type_in), span);
}

TypePtr Typer::value_type(Shape shape, DType dtype, Shape valid) const {
  auto t = std::make_shared<Type>(tile_level() ? *tile_type(std::move(shape), dtype, MemorySpace::kVec)
                                               : *tensor_type(std::move(shape), dtype, TensorPlace::kOnChip));
  t->valid = normal_valid(t->shape, std::move(valid));
  t->storage = std::make_shared<Storage>();
  t->storage->extents = t->shape;
  return t;
}

ExprPtr Typer::value(Shape shape, DType dtype, Shape valid) const {
  return result(value_type(std::move(shape), dtype, std::move(valid)));
}

ExprPtr Typer::tile_value(Shape shape, DType dtype, MemorySpace space, Shape valid) const {
  auto t = std::make_shared<Type>(*tile_type(std::move(shape), dtype, space));
  t->valid = normal_valid(t->shape, std::move(valid));
  t->storage = std::make_shared<Storage>();
  t->storage->extents = t->shape;
  return result(t);
}

ExprPtr Typer::view(int i, Shape shape, Shape valid) const {
  auto t = std::make_shared<Type>(type(i));
  t->shape = std::move(shape);
  t->valid = normal_valid(t->shape, std::move(valid));
  // Declared views and allocations describe the whole operand, not a part of it.
  t->tensor_view = nullptr;
  t->tile_view = nullptr;
  t->memref = nullptr;
  if (t->storage && t->storage->created && !t->static_shape()) t->storage->needs_global = true;
  return result(t);
}

// ---- extents

Dim dim_of(const ExprPtr& e) {
  const ExprPtr simple = simplify(e);
  if (const auto c = const_int(simple)) return *c >= 0 ? Dim(*c) : Dim(simple);
  return Dim(simple);
}

ExprPtr expr_of(const Dim& d) { return d.is_const() ? int_const(d.value, DType::kIndex) : d.expr; }

bool provably_equal(const Dim& a, const Dim& b) {
  if (a.is_const() || b.is_const()) return a.value == b.value;
  return a.expr && b.expr && same_expr(a.expr, b.expr);
}

namespace {

ExprPtr index_op(OpId op, const ExprPtr& a, const ExprPtr& b) {
  return op_expr(op, {a, b}, {}, scalar_type(DType::kIndex));
}

}  // namespace

std::optional<int64_t> fold_sum(const ExprPtr& a, const Dim& b, const Dim& c) {
  const ExprPtr eb = expr_of(b);
  const ExprPtr ec = expr_of(c);
  if (!a || !eb || !ec) return std::nullopt;
  return const_int(simplify(index_op(OpId::k_scalar_sub, index_op(OpId::k_scalar_add, a, eb), ec)));
}

Dim dim_sum(const Dim& a, const Dim& b) {
  if (a.is_const() && b.is_const()) return Dim(a.value + b.value);
  const ExprPtr x = expr_of(a);
  const ExprPtr y = expr_of(b);
  return x && y ? dim_of(index_op(OpId::k_scalar_add, x, y)) : Dim();
}

Dim dim_product(const Dim& a, const Dim& b) {
  if (a.is_const() && b.is_const()) {
    int64_t product = 0;
    if (__builtin_mul_overflow(a.value, b.value, &product)) product = INT64_MAX;  // too large is too large
    return Dim(product);
  }
  const ExprPtr x = expr_of(a);
  const ExprPtr y = expr_of(b);
  return x && y ? dim_of(index_op(OpId::k_scalar_mul, x, y)) : Dim();
}

Shape valid_of(const Type& t) { return t.valid.empty() ? t.shape : t.valid; }

Shape normal_valid(const Shape& shape, Shape valid) {
  if (valid.size() != shape.size()) return {};
  for (size_t i = 0; i < shape.size(); ++i) {
    if (!provably_equal(shape[i], valid[i])) return valid;
  }
  return {};
}

bool fully_valid(const Type& t) { return normal_valid(t.shape, t.valid).empty(); }

bool same_static_shape(const Shape& a, const Shape& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (provably_differ(a[i], b[i])) return false;
  }
  return true;
}

const char* space_name(MemorySpace s) { return s == MemorySpace::kUnset ? "unplaced" : space_member(s); }

}  // namespace pypto::ir::infer
