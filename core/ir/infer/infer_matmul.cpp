// SPDX-License-Identifier: Apache-2.0
// Matrix products (02 section 18).
#include <algorithm>

#include "core/ir/infer/typer.h"

namespace pypto::ir::infer {
namespace {

/// Shapes of a product after the transpositions, last two axes split off.
struct Product {
  Shape shape, valid;
};

struct Matrix {
  Shape batch, batch_valid;
  Dim rows, cols, valid_rows, valid_cols;
  bool vector = false;  ///< rank 1: a row on the left, a column on the right
};

DType accumulator(DType operand) { return is_float(operand) ? DType::kFp32 : DType::kInt32; }

Matrix matrix(const Typer& t, int i, bool transposed, bool left) {
  const Type& x = t.type(i);
  const Shape valid = valid_of(x);
  Matrix m;
  if (x.rank() == 0) t.value_error("argument '" + t.param(i) + "' has rank 0");
  if (x.rank() == 1) {
    if (transposed) {
      t.value_error("argument '" + t.param(i) + "' has rank 1 and cannot be transposed",
                    left ? "leave a_trans out" : "leave b_trans out");
    }
    m.vector = true;
    (left ? m.rows : m.cols) = Dim(1);
    (left ? m.valid_rows : m.valid_cols) = Dim(1);
    (left ? m.cols : m.rows) = x.shape[0];
    (left ? m.valid_cols : m.valid_rows) = valid[0];
    return m;
  }
  const size_t n = x.shape.size();
  m.batch.assign(x.shape.begin(), x.shape.end() - 2);
  m.batch_valid.assign(valid.begin(), valid.end() - 2);
  m.rows = x.shape[n - 2];
  m.cols = x.shape[n - 1];
  m.valid_rows = valid[n - 2];
  m.valid_cols = valid[n - 1];
  if (transposed) {
    std::swap(m.rows, m.cols);
    std::swap(m.valid_rows, m.valid_cols);
  }
  return m;
}

std::string operand_text(const Typer& t, int i, bool transposed) {
  return "'" + t.param(i) + "' " + shape_text(t.type(i).shape) + (transposed ? " transposed" : "");
}

void check_contraction(const Typer& t, const Matrix& a, const Matrix& b, const std::string& texts) {
  if (provably_differ(a.cols, b.rows)) {
    t.value_error("contraction extents differ: " + texts + " contract " + dim_text(a.cols) + " with " +
                      dim_text(b.rows),
                  "the last axis of lhs and the second-to-last axis of rhs must be equal; transpose one "
                  "operand if needed");
  }
  if (a.valid_cols.is_const() && b.valid_rows.is_const() && b.valid_rows.value < a.valid_cols.value) {
    t.value_error("rhs is valid for " + dim_text(b.valid_rows) + " contraction rows, lhs has " +
                      dim_text(a.valid_cols) + " valid columns",
                  "rhs must be valid for at least as many rows");
  }
}

/// NumPy broadcast of batch axes.
Shape batch_shape(const Typer& t, const Shape& a, const Shape& b, const std::string& texts) {
  Shape out(std::max(a.size(), b.size()), Dim(1));
  for (const Shape* s : {&a, &b}) {
    const size_t lead = out.size() - s->size();
    for (size_t k = 0; k < s->size(); ++k) {
      Dim& d = out[lead + k];
      const Dim& e = (*s)[k];
      if (d.is_const() && d.value == 1) {
        d = e;
      } else if (provably_differ(d, e) && e.value != 1) {
        t.value_error("batch axes of " + texts + " do not broadcast");
      } else if (e.is_const() && e.value != 1) {
        d = e;
      }
    }
  }
  return out;
}

Product product(const Typer& t, int lhs, int rhs, bool a_trans, bool b_trans) {
  const Matrix a = matrix(t, lhs, a_trans, true);
  const Matrix b = matrix(t, rhs, b_trans, false);
  const std::string texts = operand_text(t, lhs, a_trans) + " and " + operand_text(t, rhs, b_trans);
  check_contraction(t, a, b, texts);
  Product p;
  p.shape = batch_shape(t, a.batch, b.batch, texts);
  p.valid = p.shape;
  if (normal_valid(a.batch, a.batch_valid).size() + normal_valid(b.batch, b.batch_valid).size() > 0) {
    std::fill(p.valid.begin(), p.valid.end(), Dim());
  }
  if (!a.vector) {
    p.shape.push_back(a.rows);
    p.valid.push_back(a.valid_rows);
  }
  if (!b.vector) {
    p.shape.push_back(b.cols);
    p.valid.push_back(b.valid_cols);
  }
  return p;
}

/// Equal pairs of the dtypes a cube multiplies (02 O-1802).
DType operand_dtype(const Typer& t, int lhs, int rhs) {
  const auto accepted = {DType::kFp16, DType::kBf16, DType::kFp32, DType::kInt8};
  t.require_dtype(lhs, accepted, "pl.cast it, or use pl.matmul_mx for FP8 on a5");
  t.require_dtype(rhs, accepted, "pl.cast it, or use pl.matmul_mx for FP8 on a5");
  t.require_same_dtype(lhs, rhs);
  return t.type(lhs).dtype;
}

void set_acc_dtype(Typer& t, DType acc) { t.attrs.set(AttrKey::k_acc_dtype, static_cast<int64_t>(acc)); }

/// Product tile in Acc, or product value on chip whose consumers may read the accumulator (02 O-1802).
ExprPtr product_value(Typer& t, const Product& p, DType dtype, DType acc) {
  set_acc_dtype(t, acc);
  auto type = std::make_shared<Type>(*t.value_type(p.shape, dtype, p.valid));
  if (t.tile_level()) type->space = MemorySpace::kAcc;
  if (dtype != acc) type->acc_dtype = acc;
  type->storage->product = true;
  return t.result(type);
}

ExprPtr accumulated(Typer& t, DType acc) {
  set_acc_dtype(t, acc);
  const Type& target = t.type(0);
  if (target.storage) {
    target.storage->product = true;
    target.storage->written = true;
  }
  return t.in_place(0);
}

void reject_true(Typer& t, int i, AttrKey key) {
  if (!t.bool_attr(i, key)) return;
  t.type_error("keyword '" + t.param(i) + "' is not supported on Tile operands",
               "use pl.tile.transpose_view: pl.matmul(a, pl.tile.transpose_view(b))");
}

/// A row window of an accumulator wider than one column block has no contiguous blocks (02 O-215).
void check_acc_window(const Typer& t) {
  const Type& acc = t.type(0);
  if (!acc.is_tile() || acc.rank() != 2 || acc.space != MemorySpace::kAcc || !acc.storage) return;
  const Shape& whole = acc.storage->extents;
  if (whole.size() != 2 || !whole[0].is_const() || !acc.shape[0].is_const() || !acc.shape[1].is_const())
    return;
  if (acc.shape[0].value < whole[0].value && acc.shape[1].value > 16) {
    t.value_error("a row window " + shape_text(acc.shape) + " of an Acc tile " + shape_text(whole) +
                      " wider than one 16-column block is no legal accumulator",
                  "use a column window, or one accumulator tile per row block");
  }
}

void check_acc(Typer& t, const Product& p, DType acc) {
  const Type& target = t.type(0);
  const DType held = target.acc_dtype != DType::kNone ? target.acc_dtype : target.dtype;
  if (held != acc) {
    t.type_error("argument 'acc' has dtype " + std::string(dtype_text(target.dtype)) + "; products of " +
                     std::string(dtype_text(t.type(1).dtype)) + " accumulate in " +
                     std::string(dtype_text(acc)),
                 "create the accumulator with dtype pl." + std::string(dtype_info(acc).member));
  }
  if (!same_static_shape(target.shape, p.shape)) {
    t.value_error("argument 'acc' has shape " + shape_text(target.shape) + ", the product of 'lhs' " +
                  shape_text(t.type(1).shape) + " and 'rhs' " + shape_text(t.type(2).shape) + " has shape " +
                  shape_text(p.shape));
  }
  check_acc_window(t);
}

void require_matrices(const Typer& t, std::initializer_list<int> operands) {
  for (const int i : operands) t.require_rank(i, 2);
}

/// Bias row of the accumulator's dtype (02 O-1807).
void check_bias(const Typer& t, int i, const Product& p, DType acc) {
  const Type& bias = t.type(i);
  t.require_rank(i, 2);
  t.require_dtype(i, {acc}, "the bias has the accumulator's dtype");
  const size_t last = p.shape.size() - 1;
  if (provably_differ(bias.shape[0], Dim(1)) || provably_differ(bias.shape[1], p.shape[last])) {
    t.value_error("argument 'bias' must have shape [1, " + dim_text(p.shape[last]) + "], got " +
                  shape_text(bias.shape));
  }
  if (provably_differ(valid_of(bias)[1], p.valid[last])) {
    t.value_error("argument 'bias' is valid in " + dim_text(valid_of(bias)[1]) + " columns, the product in " +
                  dim_text(p.valid[last]));
  }
}

}  // namespace

ExprPtr type_matmul(Typer& t) {
  t.dispatch({0, 1});
  const DType operand = operand_dtype(t, 0, 1);
  const DType acc = accumulator(operand);
  if (t.tile_level()) {
    const DType out = t.dtype_attr(2, AttrKey::k_out_dtype, acc);
    if (out != acc) {
      t.type_error("keyword 'out_dtype' must be " + std::string(dtype_text(acc)) + " on Tile operands, got " +
                       std::string(dtype_text(out)),
                   "leave it out and pl.cast the product");
    }
    reject_true(t, 3, AttrKey::k_a_trans);
    reject_true(t, 4, AttrKey::k_b_trans);
    reject_true(t, 5, AttrKey::k_c_matrix_nz);
    require_matrices(t, {0, 1});
    return product_value(t, product(t, 0, 1, false, false), acc, acc);
  }
  const DType out = t.dtype_attr(2, AttrKey::k_out_dtype, operand);
  const bool a_trans = t.bool_attr(3, AttrKey::k_a_trans);
  const bool b_trans = t.bool_attr(4, AttrKey::k_b_trans);
  t.bool_attr(5, AttrKey::k_c_matrix_nz);
  if (is_float(out) != is_float(operand) ||
      (is_float(out) && out != DType::kFp32 && out != DType::kFp16 && out != DType::kBf16)) {
    t.type_error("keyword 'out_dtype' is " + std::string(dtype_text(out)) + " for operands of dtype " +
                     std::string(dtype_text(operand)) +
                     "; an integer result needs integer operands, a float result float "
                     "operands",
                 is_float(operand) ? "use pl.FP32, pl.FP16 or pl.BF16" : "use pl.INT32");
  }
  return product_value(t, product(t, 0, 1, a_trans, b_trans), out, acc);
}

ExprPtr type_matmul_acc(Typer& t) {
  t.dispatch({0, 1, 2});
  const DType acc = accumulator(operand_dtype(t, 1, 2));
  bool a_trans = false;
  bool b_trans = false;
  if (t.tile_level()) {
    reject_true(t, 3, AttrKey::k_a_trans);
    reject_true(t, 4, AttrKey::k_b_trans);
    require_matrices(t, {0, 1, 2});
  } else {
    a_trans = t.bool_attr(3, AttrKey::k_a_trans);
    b_trans = t.bool_attr(4, AttrKey::k_b_trans);
  }
  const Product p = product(t, 1, 2, a_trans, b_trans);
  check_acc(t, p, acc);
  if (t.has(5)) {
    if (!t.is_scalar(5) || t.type(5).dtype != DType::kBool)
      t.bad(5, "a BOOL scalar", "write a comparison such as k == 0");
    if (p.shape.size() != 2) {
      t.value_error("keyword 'init_cond' is for rank-2 products only, got shape " + shape_text(p.shape));
    }
  }
  return accumulated(t, acc);
}

ExprPtr type_matmul_bias(Typer& t) {
  t.tile_only({0, 1, 2});
  const DType acc = accumulator(operand_dtype(t, 0, 1));
  require_matrices(t, {0, 1});
  const Product p = product(t, 0, 1, false, false);
  check_bias(t, 2, p, acc);
  return product_value(t, p, acc, acc);
}

namespace {

void reject_tensors(const Typer& t, std::initializer_list<int> operands) {
  for (const int i : operands) {
    if (t.is_tensor(i)) t.bad(i, "a Tile", "on Tensors use pl.matmul, which broadcasts batch axes");
  }
}

}  // namespace

ExprPtr type_batch_matmul(Typer& t) {
  reject_tensors(t, {0, 1});
  t.tile_only({0, 1});
  const DType acc = accumulator(operand_dtype(t, 0, 1));
  for (const int i : {0, 1}) {
    if (t.type(i).rank() < 2) t.value_error("argument '" + t.param(i) + "' must have rank 2 or more");
  }
  return product_value(t, product(t, 0, 1, false, false), acc, acc);
}

ExprPtr type_batch_matmul_acc(Typer& t) {
  reject_tensors(t, {0, 1, 2});
  t.tile_only({0, 1, 2});
  const DType acc = accumulator(operand_dtype(t, 1, 2));
  for (const int i : {1, 2}) {
    if (t.type(i).rank() < 2) t.value_error("argument '" + t.param(i) + "' must have rank 2 or more");
  }
  check_acc(t, product(t, 1, 2, false, false), acc);
  return accumulated(t, acc);
}

// ---- gemv

namespace {

constexpr int64_t kGemvRows = 16;

Product row_product(Typer& t, int lhs, int rhs) {
  require_matrices(t, {lhs, rhs});
  const Type& a = t.type(lhs);
  if (provably_differ(a.shape[0], Dim(1)) || provably_differ(valid_of(a)[0], Dim(1))) {
    t.value_error("argument '" + t.param(lhs) + "' must be one row [1, K], got " + shape_text(a.shape),
                  "use pl.matmul");
  }
  return product(t, lhs, rhs, false, false);
}

void phase(Typer& t, int i) {
  const std::string p = t.string_attr(i, AttrKey::k_acc_phase, "unspecified");
  if (p != "unspecified" && p != "partial" && p != "final") {
    t.value_error("argument 'acc_phase' must be \"unspecified\", \"partial\" or \"final\", got \"" + p +
                  "\"");
  }
}

/// One valid row of a block of 16 (02 O-1809).
ExprPtr row_value(Typer& t, Product p, DType acc) {
  p.shape[0] = Dim(kGemvRows);
  return product_value(t, p, acc, acc);
}

}  // namespace

ExprPtr type_gemv(Typer& t) {
  t.tile_only({0, 1});
  const DType acc = accumulator(operand_dtype(t, 0, 1));
  phase(t, 2);
  return row_value(t, row_product(t, 0, 1), acc);
}

ExprPtr type_gemv_acc(Typer& t) {
  t.tile_only({0, 1, 2});
  const DType acc = accumulator(operand_dtype(t, 1, 2));
  phase(t, 3);
  Product p = row_product(t, 1, 2);
  t.require_rank(0, 2);
  // The accumulator may be the 16-row block that gemv gives, or one row.
  if (t.type(0).shape[0].is_const() && t.type(0).shape[0].value == kGemvRows) p.shape[0] = Dim(kGemvRows);
  check_acc(t, p, acc);
  return accumulated(t, acc);
}

ExprPtr type_gemv_bias(Typer& t) {
  t.tile_only({0, 1, 2});
  const DType acc = accumulator(operand_dtype(t, 0, 1));
  phase(t, 3);
  const Product p = row_product(t, 0, 1);
  check_bias(t, 2, p, acc);
  return row_value(t, p, acc);
}

// ---- block-scaled

namespace {

/// Operands at `first`: lhs, lhs_scale, rhs, rhs_scale (02 O-1810).
Product scaled_product(Typer& t, int first) {
  t.require_a5(t.row->name);
  const int lhs = first, lhs_scale = first + 1, rhs = first + 2, rhs_scale = first + 3;
  require_matrices(t, {lhs, lhs_scale, rhs, rhs_scale});
  t.require_dtype(lhs, {DType::kFp8E4M3FN}, "cast an FP4 operand to pl.FP8E4M3FN first");
  t.require_dtype(rhs, {DType::kFp8E4M3FN}, "cast an FP4 operand to pl.FP8E4M3FN first");
  t.require_dtype(lhs_scale, {DType::kFp8E8M0}, "load it from an MX tensor and move it to LeftScale");
  t.require_dtype(rhs_scale, {DType::kFp8E8M0}, "load it from an MX tensor and move it to RightScale");
  const Product p = product(t, lhs, rhs, false, false);
  const Shape& a = t.type(lhs).shape;
  const Shape& b = t.type(rhs).shape;
  const auto multiple = [&](const Dim& d, int64_t of, const char* what) {
    if (d.is_const() && d.value % of != 0) {
      t.value_error(std::string(what) + " = " + dim_text(d) + " must be a multiple of " + std::to_string(of));
    }
  };
  multiple(a[0], 16, "M");
  multiple(a[1], 64, "K");
  multiple(b[1], 32, "N");
  const auto scale = [&](int i, const Dim& rows, const Dim& cols) {
    const Shape want = {rows, cols};
    if (!same_static_shape(t.type(i).shape, want)) {
      t.value_error("argument '" + t.param(i) + "' must have shape " + shape_text(want) + ", got " +
                    shape_text(t.type(i).shape));
    }
  };
  const Dim groups = a[1].is_const() ? Dim(a[1].value / 32) : Dim();
  scale(lhs_scale, a[0], groups);
  scale(rhs_scale, groups, b[1]);
  if (provably_differ(valid_of(t.type(lhs_scale))[1], valid_of(t.type(rhs_scale))[0])) {
    t.value_error("the scales must have equal valid K groups, got " +
                  dim_text(valid_of(t.type(lhs_scale))[1]) + " and " +
                  dim_text(valid_of(t.type(rhs_scale))[0]));
  }
  return p;
}

}  // namespace

ExprPtr type_matmul_mx(Typer& t) {
  t.tile_only({0, 1, 2, 3});
  return product_value(t, scaled_product(t, 0), DType::kFp32, DType::kFp32);
}

ExprPtr type_matmul_mx_acc(Typer& t) {
  t.tile_only({0, 1, 2, 3, 4});
  const Product p = scaled_product(t, 1);
  const Type& target = t.type(0);
  if (target.dtype != DType::kFp32 || !same_static_shape(target.shape, p.shape)) {
    t.value_error("argument 'acc' must be FP32 of shape " + shape_text(p.shape) + ", got " +
                  type_text(target));
  }
  check_acc_window(t);
  return accumulated(t, DType::kFp32);
}

ExprPtr type_matmul_mx_bias(Typer& t) {
  t.tile_only({0, 1, 2, 3, 4});
  const Product p = scaled_product(t, 0);
  check_bias(t, 4, p, DType::kFp32);
  return product_value(t, p, DType::kFp32, DType::kFp32);
}

}  // namespace pypto::ir::infer
