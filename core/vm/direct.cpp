// SPDX-License-Identifier: Apache-2.0
#include "core/vm/direct.h"

#include <algorithm>
#include <utility>

#include "core/vm/interp.h"
#include "core/vm/kernels/chain_plan.h"
#include "core/vm/kernels/gemm.h"
#include "core/vm/ops/elementwise.h"

namespace pypto::vm {
namespace {

using Kind = DirectOp::Kind;

inline bool packed(const View& v) {
  if (v.rank != 2) return v.packed();
  return (v.shape[1] == 1 || v.stride[1] == 1) && (v.shape[0] == 1 || v.stride[0] == v.shape[1]);
}

inline bool same_shape(const View& a, const View& b) {
  if (a.rank != b.rank) return false;
  if (a.rank == 2) return a.shape[0] == b.shape[0] && a.shape[1] == b.shape[1];
  for (int i = 0; i < a.rank; ++i) {
    if (a.shape[i] != b.shape[i]) return false;
  }
  return true;
}

/// One run of specified elements of `dtype` on chip.
inline bool plain(const View& v, DType dtype) {
  return v.dtype == dtype && v.fully_valid && v.buffer->kind == BufferKind::kOnChip &&
         v.buffer->written.all && packed(v);
}

/// Whether what `v` holds may be overwritten by a plain result of the shape of `like`: nothing else refers to
/// its storage.
inline bool reusable(const View& v, DType dtype, const View& like, int64_t bytes) {
  const Buffer* b = v.buffer.get();
  // One recycled piece of storage instead of two in turn: it is still in the first-level cache.
  return b != nullptr && b->refs == 1 && v.dtype == dtype && v.offset == 0 && v.fully_valid &&
         b->kind == BufferKind::kOnChip && b->written.map == nullptr && !b->read_only &&
         same_shape(v, like) && packed(v) && b->bytes == bytes;
}

/// Makes `out` a fresh plain tile of the given shape, which may be that of the same view.
void replace(View& out, DType dtype, int rank, const int64_t* shape, BufferRef storage) {
  out.set_packed(rank, shape);
  out.dtype = dtype;
  out.offset = 0;
  out.pad = PadMode::kNull;
  out.buffer = std::move(storage);
  out.snapshot = BufferRef();
}

bool factor(const View& v) {
  return v.rank == 2 && v.fully_valid && v.buffer->kind == BufferKind::kOnChip && v.buffer->written.all &&
         (v.dtype == DType::kFp32 || v.dtype == DType::kFp16 || v.dtype == DType::kBf16 ||
          v.dtype == DType::kInt8);
}

bool whole_bytes(DType d) { return d != DType::kNone && d != DType::kBool && dtype_bits(d) >= 8; }

DirectOp direct_of(const OpInsn& o) {
  DirectOp d;
  if (o.results.size() != 1 || o.results[0].cls != RegClass::kView || o.operands.empty()) return d;
  if (o.result_is_tile.empty() || !o.result_is_tile[0]) return d;
  const ChainOp op = chain_op(o.op);
  const Operand& first = o.operands[0];
  if (first.kind != Operand::Kind::kReg || first.reg.cls != RegClass::kView) return d;
  d.from = first.reg.dtype;
  d.to = o.results[0].dtype;
  d.lhs = first.reg.index;
  d.out = o.results[0].index;
  d.width = static_cast<int8_t>(dtype_bytes(d.to));
  if (o.op == ir::OpId::k_matmul) {
    const bool plain_factors = o.attrs.get_int(ir::AttrKey::k_a_trans, 0) == 0 &&
                               o.attrs.get_int(ir::AttrKey::k_b_trans, 0) == 0 && o.operands.size() > 1 &&
                               o.operands[1].kind == Operand::Kind::kReg &&
                               o.operands[1].reg.cls == RegClass::kView;
    if (!plain_factors) return d;
    d.rhs = o.operands[1].reg.index;
    d.kind = Kind::kMatmul;
    return d;
  }
  // An accumulator is rounded to its declared dtype before it is used.
  if (!whole_bytes(d.from) || !whole_bytes(d.to) || o.attrs.find(ir::AttrKey::k_acc_dtype)) return d;
  Kind kind = Kind::kNone;
  switch (op.kind) {
    case ChainKind::kBinary: {
      if (o.operands.size() < 2 || o.operands[1].kind != Operand::Kind::kReg || d.from != d.to) return d;
      const Reg& second = o.operands[1].reg;
      d.rhs = second.index;
      // Other scalars are converted, which may warn.
      const bool scalar = second.cls == RegClass::kScalar;
      if (scalar ? is_float(second.dtype) != is_float(d.to) : second.dtype != d.to) return d;
      const DType of_scalar = scalar ? second.dtype : DType::kNone;
      if (!chain_supports(o.op, d.from, scalar ? DType::kNone : second.dtype, of_scalar, d.to)) return d;
      d.binary = binary_kernel(op.binary, d.to, scalar ? Spread::kRhs : Spread::kNone);
      kind = scalar ? Kind::kScalar : Kind::kBinary;
      break;
    }
    case ChainKind::kUnary:
      if (d.from != d.to || !chain_supports(o.op, d.from, DType::kNone, DType::kNone, d.to)) return d;
      d.unary = unary_kernel(op.unary, d.to);
      kind = Kind::kUnary;
      break;
    case ChainKind::kCast:
      d.mode = cast_mode(o.attrs);
      if (d.from == DType::kFp32 && d.to != DType::kFp32) {
        d.narrow = narrow_kernel(d.to);
        kind = Kind::kNarrow;
      } else {
        d.unary = cast_kernel(d.from, d.to);
        kind = Kind::kUnary;
      }
      break;
    default:
      break;
  }
  if (d.binary != nullptr) d.kind = kind;
  return d;
}

}  // namespace

void find_direct(FunctionCode& fn) {
  if (fn.level >= ir::Level::kChip || fn.type == ir::FunctionType::kOrchestration) return;
  for (OpInsn& o : fn.ops) o.direct = direct_of(o);
}

bool DirectRunner::matmul(const DirectOp& op) {
  const View& a = frame_.v[static_cast<size_t>(op.lhs)];
  const View& b = frame_.v[static_cast<size_t>(op.rhs)];
  if (!factor(a) || !factor(b) || a.shape[1] != b.shape[0]) return false;
  if ((a.dtype == DType::kInt8) != (b.dtype == DType::kInt8)) return false;
  const DType dtype = a.dtype == DType::kInt8 ? DType::kInt32 : DType::kFp32;
  View& out = frame_.v[static_cast<size_t>(op.out)];
  View like;
  like.rank = 2;
  like.shape[0] = a.shape[0];
  like.shape[1] = b.shape[1];
  const int64_t bytes = like.shape[0] * like.shape[1] * 4;
  const bool reuses =
      !(out.buffer == a.buffer) && !(out.buffer == b.buffer) && reusable(out, dtype, like, bytes);
  if (!reuses) ++version_;
  BufferRef storage = reuses ? out.buffer : BufferRef(pool_alloc(bytes, false));
  Gemm g;
  g.m = like.shape[0];
  g.n = like.shape[1];
  g.k = a.shape[1];
  g.a = {a.data(), a.dtype, a.stride[0], a.stride[1]};
  g.b = {b.data(), b.dtype, b.stride[0], b.stride[1]};
  g.c = storage->data;
  g.c_row = g.n;
  gemm(g);
  storage->written.all = true;
  replace(out, dtype, 2, like.shape, std::move(storage));
  return true;
}

void DirectRunner::Ran::run(const DirectOp& op, const Frame& frame) const {
  switch (op.kind) {
    case Kind::kBinary:
      return op.binary(lhs, rhs, out, count);
    case Kind::kScalar: {
      alignas(8) uint8_t element[8];
      const Scalar s = frame.s[static_cast<size_t>(op.rhs)];
      if (is_float(op.to)) {
        write_float(op.to, element, s.f);
      } else {
        write_integer(op.to, element, s.i);
      }
      return op.binary(lhs, element, out, count);
    }
    case Kind::kUnary:
      return op.unary(lhs, out, count);
    case Kind::kNarrow:
      return op.narrow(static_cast<const float*>(lhs), out, count, op.mode);
    default:
      PYPTO_CHECK(false, "an operation that does not run directly");
  }
}

bool DirectRunner::first(const DirectOp& op, int32_t index, Ran& r) {
  if (op.kind == Kind::kMatmul) return matmul(op);
  const View& lhs = frame_.v[static_cast<size_t>(op.lhs)];
  if (!plain(lhs, op.from)) return false;
  Ran now;
  now.lhs = lhs.data();
  if (op.kind == Kind::kBinary) {
    const View& rhs = frame_.v[static_cast<size_t>(op.rhs)];
    if (!plain(rhs, op.to) || !same_shape(rhs, lhs)) return false;
    now.rhs = rhs.data();
  }
  View& out = frame_.v[static_cast<size_t>(op.out)];
  const int64_t n = lhs.rank == 2 ? lhs.shape[0] * lhs.shape[1] : lhs.elements();
  const int64_t bytes = n * op.width;
  now.count = static_cast<size_t>(n);
  if (!reusable(out, op.to, lhs, bytes)) {
    BufferRef fresh(pool_alloc(bytes, false));
    now.out = fresh->data;
    now.run(op, frame_);
    replace(out, op.to, lhs.rank, lhs.shape, std::move(fresh));
    ++version_;
    return true;
  }
  now.out = out.buffer->data;
  now.run(op, frame_);
  out.pad = PadMode::kNull;
  out.buffer->written.all = true;
  if (out.snapshot) out.snapshot = BufferRef();
  now.index = index;
  now.version = version_;
  r = now;
  return true;
}

}  // namespace pypto::vm
