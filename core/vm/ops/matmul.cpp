// SPDX-License-Identifier: Apache-2.0
// Matrix products (02 section 18). The accumulation order and its independence of every split are the
// kernel's (gemm.h).
#include <algorithm>

#include "core/vm/kernels/gemm.h"
#include "core/vm/ops/matmul.h"
#include "core/vm/ops/region.h"
#include "core/vm/ops/register.h"
#include "core/vm/ops/views.h"
#include "core/vm/ops/written.h"

namespace pypto::vm {

void warn_unwritten(OpCall& call, const View& acc) {
  Extents at;
  const Mark mark = acc.buffer->written.all ? 0 : first_unspecified(acc, &at);
  if (mark == 0) return;
  Diagnostic d = unspecified_report("unspecified values take part",
                                    subject(call, 0) + " of shape " + list_text(shape_of(acc).span()) +
                                        " is accumulated into, but cell " + list_text(at.span()) + " " +
                                        marks().why(mark) + "; the product is added to unspecified values");
  marks().explain(mark, d);
  d.hint = "start with init_cond=(k == 0), with the product itself, or with zeros";
  call.report(std::move(d));
}

namespace {

using ir::AttrKey;
using ir::OpId;

DType accumulator_of(DType operand) { return is_float(operand) ? DType::kFp32 : DType::kInt32; }

/// The operands of a product as matrices with batch axes in front: `a` [..., M, K], `b` [..., K, N].
struct Factors {
  int a_param = 0, b_param = 1;
  View a, b;
  bool drop_rows = false, drop_cols = false;  ///< the result lacks the axis of a 1-D operand
  int64_t m = 0, n = 0;                       ///< physical
  int64_t valid_m = 0, valid_n = 0, valid_k = 0;
  Extents batch, valid_batch;
};

/// A 1-D operand as a row (lhs) or column (rhs) matrix.
View as_matrix(const View& v, bool row) {
  View out = v;
  if (v.rank != 1) return out;
  out.rank = 2;
  const int vector_axis = row ? 1 : 0, unit_axis = row ? 0 : 1;
  out.shape[vector_axis] = v.shape[0];
  out.valid[vector_axis] = v.valid[0];
  out.stride[vector_axis] = v.stride[0];
  out.shape[unit_axis] = out.valid[unit_axis] = 1;
  out.stride[unit_axis] = v.stride[0] * v.shape[0];
  return out;
}

Factors make_factors(OpCall& call, int a_param, int b_param, bool a_trans, bool b_trans) {
  Factors f;
  f.a_param = a_param;
  f.b_param = b_param;
  const View& lhs = read_operand(call, a_param);
  const View& rhs = read_operand(call, b_param);
  f.drop_rows = lhs.rank == 1;
  f.drop_cols = rhs.rank == 1;
  f.a = as_matrix(lhs, true);
  f.b = as_matrix(rhs, false);
  if (a_trans) f.a = transpose_strides(f.a, -2, -1);
  if (b_trans) f.b = transpose_strides(f.b, -2, -1);
  const int ra = f.a.rank, rb = f.b.rank;
  f.m = f.a.shape[ra - 2];
  f.n = f.b.shape[rb - 1];
  f.valid_m = f.a.valid[ra - 2];
  f.valid_n = f.b.valid[rb - 1];
  f.valid_k = f.a.valid[ra - 1];
  if (f.a.shape[ra - 1] != f.b.shape[rb - 2]) {
    fault(call, a_param,
          "of shape " + list_text(shape_of(f.a).span()) + " and the right operand of shape " +
              list_text(shape_of(f.b).span()) + " have different contraction extents " +
              std::to_string(f.a.shape[ra - 1]) + " and " + std::to_string(f.b.shape[rb - 2]));
  }
  if (f.b.valid[rb - 2] < f.valid_k) {
    fault(call, b_param,
          "is valid for " + std::to_string(f.b.valid[rb - 2]) + " rows, the left operand is valid for " +
              std::to_string(f.valid_k) + " columns of the contraction",
          "give the right operand at least as many valid rows, or fill it with pl.fillpad");
  }
  // Batch axes broadcast as in NumPy.
  const int axes = std::max(ra, rb) - 2;
  for (int i = 0; i < axes; ++i) {
    const int ia = i - (axes - (ra - 2)), ib = i - (axes - (rb - 2));
    const int64_t ea = ia >= 0 ? f.a.shape[ia] : 1, eb = ib >= 0 ? f.b.shape[ib] : 1;
    if (ea != eb && ea != 1 && eb != 1) {
      fault(call, a_param,
            "of shape " + list_text(shape_of(f.a).span()) + " and the right operand of shape " +
                list_text(shape_of(f.b).span()) + " have batch axes that do not broadcast");
    }
    const int64_t va = ia >= 0 ? f.a.valid[ia] : 1, vb = ib >= 0 ? f.b.valid[ib] : 1;
    f.batch.push(ea == 1 ? eb : ea);
    f.valid_batch.push(ea == 1 && eb != 1 ? std::min<int64_t>(va, 1) * vb
                       : eb == 1          ? va * std::min<int64_t>(vb, 1)
                                          : std::min(va, vb));
  }
  return f;
}

GemmMatrix matrix_at(const View& v, const Extents& batch, const Extents& at) {
  int64_t position = 0;
  const int axes = v.rank - 2;
  for (int i = 0; i < axes; ++i) {
    if (v.shape[i] != 1) position += at[batch.rank - axes + i] * v.stride[i];
  }
  return {v.data() + position * dtype_bytes(v.dtype), v.dtype, v.stride[v.rank - 2], v.stride[v.rank - 1]};
}

/// Runs all batches; `out` has the batch axes and the two matrix axes.
void run_products(const Factors& f, const View& out, GemmStart start, const View* bias) {
  Gemm g;
  g.m = f.valid_m;
  g.n = f.valid_n;
  g.k = f.valid_k;
  g.start = start;
  g.c_row = out.stride[out.rank - 2];
  g.c_col = out.stride[out.rank - 1];
  if (bias) {
    g.bias = bias->data();
    g.bias_col = bias->stride[bias->rank - 1];
  }
  if (f.valid_batch.product() == 0) return;
  Extents at = expand_front({}, f.batch.rank, 0);
  while (true) {
    g.a = matrix_at(f.a, f.batch, at);
    g.b = matrix_at(f.b, f.batch, at);
    const GemmMatrix c = matrix_at(out, f.batch, at);
    g.c = const_cast<void*>(c.data);
    gemm(g);
    int axis = f.batch.rank - 1;
    while (axis >= 0 && ++at[axis] == f.valid_batch[axis]) at[axis--] = 0;
    if (axis < 0) return;
  }
}

/// Removes the unit axis of a 1-D operand from a result.
View without_vector_axes(View out, const Factors& f) {
  int n = 0;
  const int rank = out.rank;
  for (int i = 0; i < rank; ++i) {
    if ((i == rank - 2 && f.drop_rows) || (i == rank - 1 && f.drop_cols)) continue;
    out.shape[n] = out.shape[i];
    out.valid[n] = out.valid[i];
    out.stride[n++] = out.stride[i];
  }
  out.rank = static_cast<int8_t>(n);
  return out;
}

/// The cells of a factor that take part: the contraction goes over the left operand's valid extent.
View factor_cells(View v, const Factors& f, bool left) {
  if (!left) v.valid[v.rank - 2] = f.valid_k;
  v.refresh_fully_valid();
  return v;
}

/// A fresh result of a product; `rows`: physical rows (gemv has more than its operand).
ExecStatus product(OpCall& call, const Factors& f, int bias_param, int64_t rows) {
  Extents shape = f.batch, valid = f.valid_batch;
  shape.push(rows);
  shape.push(f.n);
  valid.push(f.valid_m);
  valid.push(f.valid_n);
  View out = alloc_result(call, accumulator_of(f.a.dtype), shape, valid);
  inherit_product(call, f.a_param, factor_cells(f.a, f, true), f.b_param, factor_cells(f.b, f, false), out);
  if (bias_param < 0) {
    run_products(f, out, GemmStart::kZero, nullptr);
  } else {
    const View& bias = read_operand(call, bias_param);
    if (bias.valid[bias.rank - 1] < f.valid_n) {
      fault(call, bias_param,
            "is valid for " + std::to_string(bias.valid[bias.rank - 1]) + " columns, the product has " +
                std::to_string(f.valid_n));
    }
    const View same = as_packed(call, bias, out.dtype);
    run_products(f, out, GemmStart::kBias, &same);
  }
  call.set_result(without_vector_axes(std::move(out), f));
  return ExecStatus::kDone;
}

/// An accumulator as [batch..., M, N] for the product, whatever unit axes it has or lacks.
View accumulator_matrix(const OpCall& call, const View& acc, const Factors& f) {
  View out = acc;
  if (f.drop_rows || f.drop_cols) {
    // [M], [N] or scalar accumulators of 1-D operands get the missing unit axes back.
    const int missing = (f.drop_rows ? 1 : 0) + (f.drop_cols ? 1 : 0);
    const int kept = 2 - missing;
    const int lead = acc.rank - kept;
    PYPTO_CHECK(lead >= 0, "accumulator has too few axes");
    out.rank = static_cast<int8_t>(lead + 2);
    const int64_t stride = kept == 1 ? acc.stride[acc.rank - 1] : 1;
    const int64_t extent = kept == 1 ? acc.shape[acc.rank - 1] : 1;
    out.shape[lead] = f.drop_rows ? 1 : extent;
    out.shape[lead + 1] = f.drop_cols ? 1 : extent;
    out.stride[lead] = f.drop_rows ? stride * extent : stride;
    out.stride[lead + 1] = f.drop_cols ? 1 : stride;
  }
  const int rank = out.rank;
  const bool fits = rank >= 2 && out.shape[rank - 2] >= f.valid_m && out.shape[rank - 1] >= f.valid_n;
  bool batches = rank - 2 <= f.batch.rank;
  for (int i = 0; batches && i < f.batch.rank; ++i) {
    const int axis = i - (f.batch.rank - (rank - 2));
    batches = (axis >= 0 ? out.shape[axis] : 1) >= f.valid_batch[i];
  }
  // Surplus unit axes in front of the accumulator are fine.
  if (rank - 2 > f.batch.rank) {
    batches = true;
    for (int i = 0; i < rank - 2 - f.batch.rank; ++i) batches = batches && out.shape[i] == 1;
  }
  if (!fits || !batches) {
    Extents product = f.batch;
    product.push(f.m);
    product.push(f.n);
    fault(call, 0,
          "of shape " + list_text(shape_of(acc).span()) + " cannot accumulate a product of shape " +
              list_text(product.span()));
  }
  if (rank - 2 > f.batch.rank) {
    const int surplus = rank - 2 - f.batch.rank;
    for (int i = surplus; i < rank; ++i) {
      out.shape[i - surplus] = out.shape[i];
      out.stride[i - surplus] = out.stride[i];
    }
    out.rank = static_cast<int8_t>(rank - surplus);
  }
  return out;
}

/// The region of `acc` that a product changes.
View product_region(const View& acc, const Factors& f) {
  View region = acc;
  const int rank = acc.rank;
  for (int i = 0; i < rank - 2; ++i) {
    const int axis = i + f.batch.rank - (rank - 2);
    region.valid[i] = axis >= 0 ? f.valid_batch[axis] : 1;
  }
  region.valid[rank - 2] = f.valid_m;
  region.valid[rank - 1] = f.valid_n;
  region.refresh_fully_valid();
  return region;
}

/// acc = (init ? 0 : acc) + a . b, in place.
ExecStatus accumulate(OpCall& call, const Factors& f, bool init) {
  const View& acc = call.view(0);
  const View matrix = accumulator_matrix(call, acc, f);
  const View region = product_region(matrix, f);
  const DType wide = accumulator_of(f.a.dtype);
  const bool rests = !init && !acc.buffer->written.all && !specified(region);
  if (!init) {
    if (rests) warn_unwritten(call, region);
    touch(call, region, AccessKind::kRead);
  }
  touch(call, region, AccessKind::kWrite);
  const GemmStart start = init ? GemmStart::kZero : GemmStart::kOld;
  const bool overlaps = acc.buffer == f.a.buffer || acc.buffer == f.b.buffer;
  if (acc.dtype == wide && !overlaps) {
    run_products(f, matrix, start, nullptr);
  } else {
    // An accumulator of another dtype, or one that shares storage with an operand, goes through a copy.
    const View cells = valid_region(region);
    View sum = packed_copy(call, cells, wide);
    run_products(f, sum, start, nullptr);
    copy_cells(cells, sum);
  }
  if (!rests) mark_written(region);
  inherit_product(call, f.a_param, factor_cells(f.a, f, true), f.b_param, factor_cells(f.b, f, false),
                  region);
  call.set_result(acc);
  return ExecStatus::kDone;
}

bool flag(const OpCall& call, AttrKey key) { return call.attr_int(key, 0) != 0; }

ExecStatus exec_matmul(OpCall& call) {
  const Factors f = make_factors(call, 0, 1, flag(call, AttrKey::k_a_trans), flag(call, AttrKey::k_b_trans));
  return product(call, f, -1, f.m);
}

ExecStatus exec_matmul_acc(OpCall& call) {
  const Factors f = make_factors(call, 1, 2, flag(call, AttrKey::k_a_trans), flag(call, AttrKey::k_b_trans));
  const bool init = call.has(5) && call.is_scalar(5) && call.integer(5) != 0;
  return accumulate(call, f, init);
}

ExecStatus exec_matmul_bias(OpCall& call) {
  const Factors f = make_factors(call, 0, 1, false, false);
  return product(call, f, 2, f.m);
}

constexpr int64_t kGemvRows = 16;

ExecStatus exec_gemv(OpCall& call) {
  return product(call, make_factors(call, 0, 1, false, false), -1, kGemvRows);
}
ExecStatus exec_gemv_bias(OpCall& call) {
  return product(call, make_factors(call, 0, 1, false, false), 2, kGemvRows);
}
ExecStatus exec_acc(OpCall& call) { return accumulate(call, make_factors(call, 1, 2, false, false), false); }

}  // namespace

void register_matmul(ExecTable& table) {
  table.set(OpId::k_matmul, exec_matmul);
  table.set(OpId::k_matmul_acc, exec_matmul_acc);
  table.set(OpId::k_matmul_bias, exec_matmul_bias);
  table.set(OpId::k_batch_matmul, exec_matmul);
  table.set(OpId::k_batch_matmul_acc, exec_acc);
  table.set(OpId::k_gemv, exec_gemv);
  table.set(OpId::k_gemv_acc, exec_acc);
  table.set(OpId::k_gemv_bias, exec_gemv_bias);
  register_matmul_mx(table);
}

}  // namespace pypto::vm
