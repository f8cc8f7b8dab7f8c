# SPDX-License-Identifier: Apache-2.0
# Written by tools/gen_stubs.py from the operation table; do not edit.
from enum import IntEnum
from typing import Any

class MaskPattern(IntEnum):
    P0101 = 1
    P1010 = 2
    P0001 = 3
    P0010 = 4
    P0100 = 5
    P1000 = 6
    P1111 = 7

def abs(tile: Any) -> Any:
    """Element-wise absolute value (chapter 02 section 10)."""

def add(lhs: Any, rhs: Any) -> Any:
    """Element-wise lhs + rhs with broadcasting (O-901 - O-905)."""

def addc(lhs: Any, rhs: Any, rhs2: Any) -> Any:
    """lhs + rhs + rhs2, one rounding per step (O-1403)."""

def adds(lhs: Any, rhs: Any) -> Any:
    """Array with scalar: element-wise add (O-904)."""

def addsc(lhs: Any, rhs: Any, rhs2: Any) -> Any:
    """lhs + scalar + rhs2, one rounding per step (O-1403)."""

def aic_gather(x: Any, *, split: Any = ...) -> Any:
    """Joins the lanes' values for the cube (O-2108)."""

def aiv_shard(x: Any, *, split: Any = ..., lane_stride: Any = ...) -> Any:
    """This lane's part of a cube value (O-2108)."""

def alloc(memory_space: Any, size: Any, *, pinned: Any = ...) -> Any:
    """Raw reservation in printed programs (O-107)."""

def and_(lhs: Any, rhs: Any) -> Any:
    """Bitwise and (O-1201)."""

def ands(lhs: Any, rhs: Any) -> Any:
    """Bitwise and with a scalar (O-1201)."""

def arange(start: Any, shape: Any, dtype: Any = ..., descending: Any = ...) -> Any:
    """Tile form of arange (O-505)."""

def assemble(target: Any, source: Any, offset: Any) -> Any:
    """Writes source into target at offset (O-706); on tiles a new value (O-707)."""

def batch_matmul(lhs: Any, rhs: Any) -> Any:
    """Batched matrix product of tiles (O-1808)."""

def batch_matmul_acc(acc: Any, lhs: Any, rhs: Any) -> Any:
    """Batched product accumulated in place (O-1808)."""

def cast(tile: Any, target_type: Any, mode: Any = ...) -> Any:
    """Element-wise conversion (chapter 02 section 11)."""

def ci(start: Any, shape: Any, dtype: Any = ..., descending: Any = ...) -> Any:
    """Tile form of arange (O-505)."""

def cmp(lhs: Any, rhs: Any, cmp_type: Any = ...) -> Any:
    """Comparison: 0/1 tensor (O-1301) or packed mask tile (O-1302)."""

def cmps(lhs: Any, rhs: Any, cmp_type: Any = ...) -> Any:
    """Comparison of a tile with a scalar: packed mask tile (O-1302)."""

def col_argmax(tile: Any, tmp_tile: Any) -> Any:
    """Row index of the extremum of each column (chapter 02 section 15)."""

def col_argmin(tile: Any, tmp_tile: Any) -> Any:
    """Row index of the extremum of each column (chapter 02 section 15)."""

def col_expand(target: Any, col_vec: Any) -> Any:
    """out[i,j] = col_vec[0,j] (O-1603)."""

def col_expand_add(tile: Any, col_vec: Any) -> Any:
    """a + v with v[0,j] spread down the column (O-1601)."""

def col_expand_div(tile: Any, col_vec: Any) -> Any:
    """a / v with v[0,j] spread down the column (O-1601)."""

def col_expand_expdif(tile: Any, col_vec: Any) -> Any:
    """exp(a - v) with v[0,j] spread down the column (O-1601)."""

def col_expand_max(tile: Any, col_vec: Any) -> Any:
    """max(a, v) with v[0,j] spread down the column (O-1601)."""

def col_expand_min(tile: Any, col_vec: Any) -> Any:
    """min(a, v) with v[0,j] spread down the column (O-1601)."""

def col_expand_mul(tile: Any, col_vec: Any) -> Any:
    """a * v with v[0,j] spread down the column (O-1601)."""

def col_expand_sub(tile: Any, col_vec: Any) -> Any:
    """a - v with v[0,j] spread down the column (O-1601)."""

def col_max(tile: Any) -> Any:
    """max down the rows (chapter 02 section 15)."""

def col_min(tile: Any) -> Any:
    """min down the rows (chapter 02 section 15)."""

def col_prod(tile: Any) -> Any:
    """prod down the rows (chapter 02 section 15)."""

def col_sum(tile: Any, tmp_tile: Any = ...) -> Any:
    """Sum down the rows, in the order of O-1505."""

def concat(src0: Any, src1: Any) -> Any:
    """Columns of src0 followed by columns of src1 (O-709)."""

def cos(tile: Any) -> Any:
    """Element-wise cosine, radians (chapter 02 section 10)."""

def create(
    shape: Any, dtype: Any, target_memory: Any = ..., transpose: Any = ..., *, flat_layout: Any = ...
) -> Any:
    """Fresh tile of constant shape in an on-chip memory; contents unspecified (O-502)."""

def create_tile(
    shape: Any, dtype: Any, target_memory: Any = ..., transpose: Any = ..., *, flat_layout: Any = ...
) -> Any:
    """Fresh tile of constant shape in an on-chip memory; contents unspecified (O-502)."""

def div(lhs: Any, rhs: Any, high_precision: Any = ...) -> Any:
    """Element-wise lhs / rhs (O-903)."""

def divs(lhs: Any, rhs: Any) -> Any:
    """Array with scalar: element-wise div (O-904)."""

def exp(tile: Any) -> Any:
    """Element-wise e^x (chapter 02 section 10)."""

def expands(target: Any, scalar: Any) -> Any:
    """Target's shape filled with a scalar (O-1604)."""

def extract(src: Any, index_row: Any, index_col: Any, shape: Any, *, target_memory: Any) -> Any:
    """Window of a tile with run-time position (O-708)."""

def fillpad(tile: Any, pad_value: Any = ...) -> Any:
    """Copy whose cells outside the valid region hold the pad value (O-1702)."""

def fillpad_expand(tile: Any, shape: Any, pad_value: Any = ...) -> Any:
    """Valid region in the origin corner of a larger shape, pad elsewhere (O-1704)."""

def fillpad_inplace(tile: Any, pad_value: Any = ...) -> Any:
    """fillpad in the operand's storage (O-1703)."""

def fmod(lhs: Any, rhs: Any) -> Any:
    """Element-wise C fmod, sign of the dividend (O-906)."""

def fmods(lhs: Any, rhs: Any) -> Any:
    """Element-wise C fmod with a scalar (O-906)."""

def full(shape: Any, dtype: Any, value: Any) -> Any:
    """Tile with every cell equal to a constant (O-504)."""

def gather(src: Any, indices: Any, tmp: Any) -> Any:
    """Flat-index gather of a tile (O-1903)."""

def gather_compare(
    src: Any,
    kvalue: Any,
    tmp: Any,
    *,
    cmp_mode: Any = ...,
    offset: Any = ...,
    out_cols: Any,
    count_dtype: Any = ...,
) -> Any:
    """Column indices of the matches of each row, and their counts (O-1906)."""

def gather_mask(src: Any, mask_pattern: Any, *, output_dtype: Any = ...) -> Any:
    """Columns selected by a mask pattern (O-1904)."""

def gather_row(
    dst: Any,
    src: Any,
    dst_offset: Any,
    src_offset: Any,
    shapes: Any,
    transpose: Any = ...,
    *,
    valid_shape: Any = ...,
) -> Any:
    """Copies one window of global memory into an on-chip accumulator (O-1910)."""

def gatherb(src: Any, offset: Any, *, output_dtype: Any = ...) -> Any:
    """Gather of 32-byte blocks by byte offset (O-1907)."""

def gemv(lhs: Any, rhs: Any, acc_phase: Any = ...) -> Any:
    """[1, K] row times matrix (O-1809)."""

def gemv_acc(acc: Any, lhs: Any, rhs: Any, acc_phase: Any = ...) -> Any:
    """gemv accumulated in place (O-1809)."""

def gemv_bias(lhs: Any, rhs: Any, bias: Any, acc_phase: Any = ...) -> Any:
    """gemv plus bias (O-1809)."""

def get_block_idx() -> Any:
    """Index of this block in its launch (chapter 02 section 22)."""

def get_block_num() -> Any:
    """Number of blocks of the launch (chapter 02 section 22)."""

def get_subblock_idx() -> Any:
    """Vector lane, 0 or 1 (chapter 02 section 22)."""

def load(
    tensor: Any, offsets: Any, shapes: Any, valid_shape: Any = ..., target_memory: Any = ..., clamp: Any = ...
) -> Any:
    """Reads a window of a tensor into a tile (O-701)."""

def log(tile: Any, high_precision: Any = ...) -> Any:
    """Element-wise natural logarithm (chapter 02 section 10)."""

def lrelu(tile: Any, slope: Any) -> Any:
    """x if x > 0 else slope * x."""

def matmul(
    lhs: Any, rhs: Any, out_dtype: Any = ..., a_trans: Any = ..., b_trans: Any = ..., c_matrix_nz: Any = ...
) -> Any:
    """Matrix product (O-1801 - O-1806)."""

def matmul_acc(
    acc: Any, lhs: Any, rhs: Any, init_cond: Any = ..., *, a_trans: Any = ..., b_trans: Any = ...
) -> Any:
    """acc += lhs . rhs in place (O-1805)."""

def matmul_bias(lhs: Any, rhs: Any, bias: Any) -> Any:
    """lhs . rhs + bias (O-1807)."""

def matmul_mx(lhs: Any, lhs_scale: Any, rhs: Any, rhs_scale: Any) -> Any:
    """Block-scaled product, a5 (O-1810)."""

def matmul_mx_acc(acc: Any, lhs: Any, lhs_scale: Any, rhs: Any, rhs_scale: Any) -> Any:
    """Block-scaled product accumulated in place, a5 (O-1810)."""

def matmul_mx_bias(lhs: Any, lhs_scale: Any, rhs: Any, rhs_scale: Any, bias: Any) -> Any:
    """Block-scaled product plus bias, a5 (O-1810)."""

def max(lhs: Any, rhs: Any) -> Any:
    """Greater of two scalars (O-604)."""

def maximum(lhs: Any, rhs: Any) -> Any:
    """Element-wise maximum (O-901)."""

def maximums(lhs: Any, rhs: Any) -> Any:
    """Tile with scalar: element-wise maximum (O-905)."""

def mgather(
    mem: Any,
    idx: Any,
    coalesce: Any = ...,
    *,
    gather_oob: Any = ...,
    target_memory: Any = ...,
    scratch: Any = ...,
    valid_shape: Any = ...,
) -> Any:
    """Gather from global memory by an index tile (O-1912)."""

def min(lhs: Any, rhs: Any) -> Any:
    """Smaller of two scalars (O-604)."""

def minimum(lhs: Any, rhs: Any) -> Any:
    """Element-wise minimum (O-901)."""

def minimums(lhs: Any, rhs: Any) -> Any:
    """Tile with scalar: element-wise minimum (O-905)."""

def move(tile: Any, target_memory: Any, blayout: Any = ..., slayout: Any = ...) -> Any:
    """Moves a tile to another memory space (O-705)."""

def mrgsort(
    src0: Any,
    src1: Any = ...,
    src2: Any = ...,
    src3: Any = ...,
    tmp: Any = ...,
    exhausted: Any = ...,
    *,
    block_len: Any = ...,
) -> Any:
    """Merges sorted runs (O-2002, O-2003)."""

def mrgsort_format1(src0: Any, block_len: Any) -> Any:
    """Printed form of mrgsort with block_len (O-107)."""

def mrgsort_format2(
    src0: Any, src1: Any, src2: Any = ..., src3: Any = ..., tmp: Any = ..., exhausted: Any = ...
) -> Any:
    """Printed form of mrgsort of several inputs (O-107)."""

def mscatter(src: Any, idx: Any, output_tensor: Any) -> Any:
    """Scatter into global memory by an index tile, a5 (O-1924)."""

def mul(lhs: Any, rhs: Any) -> Any:
    """Element-wise lhs * rhs with broadcasting (O-901 - O-905)."""

def muls(lhs: Any, rhs: Any) -> Any:
    """Array with scalar: element-wise mul (O-904)."""

def neg(tile: Any) -> Any:
    """Element-wise -x (chapter 02 section 10)."""

def not_(tile: Any) -> Any:
    """Bitwise complement, INT16 and UINT16 (O-1201)."""

def or_(lhs: Any, rhs: Any) -> Any:
    """Bitwise or (O-1201)."""

def ors(lhs: Any, rhs: Any) -> Any:
    """Bitwise or with a scalar (O-1201)."""

def part_add(src0: Any, src1: Any) -> Any:
    """Combines operands whose valid regions differ (O-1402)."""

def part_max(src0: Any, src1: Any) -> Any:
    """Combines operands whose valid regions differ (O-1402)."""

def part_min(src0: Any, src1: Any) -> Any:
    """Combines operands whose valid regions differ (O-1402)."""

def part_mul(src0: Any, src1: Any) -> Any:
    """Combines operands whose valid regions differ (O-1402)."""

def prelu(tile: Any, slope: Any, tmp: Any) -> Any:
    """x if x > 0 else x * slope, element-wise slope (O-1401)."""

def random(
    key0: Any,
    key1: Any,
    counter0: Any,
    counter1: Any,
    counter2: Any,
    counter3: Any,
    shape: Any,
    valid_shape: Any = ...,
    dtype: Any = ...,
    rounds: Any = ...,
) -> Any:
    """Tile form of random with a valid shape (O-507); a5 only."""

def read(tile: Any, indices: Any) -> Any:
    """One element as a scalar (O-601)."""

def recip(tile: Any, high_precision: Any = ...) -> Any:
    """Element-wise 1/x (chapter 02 section 10)."""

def reinterpret_view(data: Any, dtype: Any, *, shape: Any = ...) -> Any:
    """Same bits under another dtype (O-810)."""

def relu(tile: Any) -> Any:
    """max(x, 0) (chapter 02 section 14)."""

def rem(lhs: Any, rhs: Any, tmp: Any) -> Any:
    """Element-wise floor remainder, sign of the divisor (O-906)."""

def rems(lhs: Any, rhs: Any, tmp: Any) -> Any:
    """Element-wise floor remainder, sign of the divisor (O-906)."""

def reshape(tile: Any, shape: Any) -> Any:
    """Same cells in row-major order under another shape (O-805)."""

def row_argmax(tile: Any, tmp_tile: Any) -> Any:
    """argmax along the last axis (chapter 02 section 15)."""

def row_argmin(tile: Any, tmp_tile: Any) -> Any:
    """argmin along the last axis (chapter 02 section 15)."""

def row_expand(target: Any, row_vec: Any) -> Any:
    """out[i,j] = row_vec[i,0] (O-1603)."""

def row_expand_add(tile: Any, row_vec: Any, tmp: Any = ...) -> Any:
    """a + v with v[i,0] spread along the row (O-1602)."""

def row_expand_div(tile: Any, row_vec: Any) -> Any:
    """a / v with v[i,0] spread along the row (O-1601)."""

def row_expand_expdif(tile: Any, row_vec: Any) -> Any:
    """exp(a - v) with v[i,0] spread along the row (O-1601)."""

def row_expand_max(tile: Any, row_vec: Any) -> Any:
    """max(a, v) with v[i,0] spread along the row (O-1601)."""

def row_expand_min(tile: Any, row_vec: Any) -> Any:
    """min(a, v) with v[i,0] spread along the row (O-1601)."""

def row_expand_mul(tile: Any, row_vec: Any) -> Any:
    """a * v with v[i,0] spread along the row (O-1601)."""

def row_expand_sub(tile: Any, row_vec: Any) -> Any:
    """a - v with v[i,0] spread along the row (O-1601)."""

def row_max(tile: Any, tmp_tile: Any) -> Any:
    """max along the last axis (chapter 02 section 15)."""

def row_min(tile: Any, tmp_tile: Any) -> Any:
    """min along the last axis (chapter 02 section 15)."""

def row_prod(tile: Any, tmp_tile: Any) -> Any:
    """prod along the last axis (chapter 02 section 15)."""

def row_sum(tile: Any, tmp_tile: Any) -> Any:
    """sum along the last axis (chapter 02 section 15)."""

def rsqrt(tile: Any, tmp: Any = ...) -> Any:
    """Tile form of rsqrt with optional scratch (O-1002)."""

def scatter(dst: Any, src: Any, indexes: Any) -> Any:
    """Flat-index scatter into a tile in place (O-1922)."""

def scatter_mask(dst: Any, src: Any, mask_pattern: Any) -> Any:
    """Mask scatter into a tile in place (O-1922)."""

def scatter_update(input: Any, dim: Any = ..., index: Any = ..., src: Any = ...) -> Any:
    """Replaces rows addressed by an index (O-1923); in place on tiles."""

def sel(mask: Any, lhs: Any, rhs: Any, tmp: Any) -> Any:
    """lhs where the mask bit is set, else rhs (O-1303)."""

def sels(mask: Any, src: Any, tmp: Any, scalar: Any) -> Any:
    """src where the mask bit is set, else scalar (O-1304)."""

def set_validshape(tile: Any, valid_rows: Any, valid_cols: Any) -> Any:
    """Sets the valid extents of a rank-2 value (O-811)."""

def shl(lhs: Any, rhs: Any) -> Any:
    """Element-wise shift (O-1203)."""

def shls(lhs: Any, rhs: Any) -> Any:
    """Element-wise shift (O-1203)."""

def shr(lhs: Any, rhs: Any) -> Any:
    """Element-wise shift (O-1203)."""

def shrs(lhs: Any, rhs: Any) -> Any:
    """Element-wise shift (O-1203)."""

def sin(tile: Any) -> Any:
    """Element-wise sine, radians (chapter 02 section 10)."""

def slice(
    tile: Any, shape: Any, offset: Any, valid_shape: Any = ..., drop_dims: Any = ..., pad_value: Any = ...
) -> Any:
    """Window: an address of a tensor, a view of a tile (O-801)."""

def sort32(src: Any, idx: Any) -> Any:
    """Sorts blocks of 32 columns into value/index records (O-2001)."""

def sqrt(tile: Any) -> Any:
    """Element-wise square root (chapter 02 section 10)."""

def store(tile: Any, offsets: Any, output_tensor: Any, shapes: Any = ..., *, atomic: Any = ...) -> Any:
    """Writes a tile's valid region into a tensor (O-703)."""

def sub(lhs: Any, rhs: Any) -> Any:
    """Element-wise lhs - rhs with broadcasting (O-901 - O-905)."""

def subc(lhs: Any, rhs: Any, rhs2: Any) -> Any:
    """lhs - rhs - rhs2, one rounding per step (O-1403)."""

def subs(lhs: Any, rhs: Any) -> Any:
    """Array with scalar: element-wise sub (O-904)."""

def subsc(lhs: Any, rhs: Any, rhs2: Any) -> Any:
    """lhs - scalar - rhs2, one rounding per step (O-1403)."""

def tpop_from_aic(
    *, shape: Any = ..., dtype: Any = ..., split: Any = ..., lane_stride: Any = ..., id: Any = ...
) -> Any:
    """Pops the oldest tile pushed by the cube (O-2103)."""

def tpop_from_aiv(*, shape: Any = ..., dtype: Any = ..., split: Any = ..., id: Any = ...) -> Any:
    """Pops the oldest tile pushed by the vector lanes (O-2103)."""

def tpush_to_aic(tile: Any, *, split: Any, id: Any = ...) -> Any:
    """Pushes a tile from a vector lane to the cube (O-2103)."""

def tpush_to_aiv(tile: Any, *, split: Any, lane_stride: Any = ..., id: Any = ...) -> Any:
    """Pushes a tile from the cube to the vector lanes (O-2103)."""

def transpose(tile: Any, axis1: Any, axis2: Any, tmp_tile: Any = ...) -> Any:
    """Swaps two axes (O-807)."""

def transpose_view(tile: Any) -> Any:
    """Swaps the last two axes without moving data (O-809)."""

def tri(diagonal: Any, shape: Any, valid_shape: Any = ..., dtype: Any = ..., upper: Any = ...) -> Any:
    """Triangular 0/1 tile (O-506)."""

def write(tile: Any, indices: Any, value: Any) -> Any:
    """Writes one element in place and returns the target (O-602)."""

def xor(lhs: Any, rhs: Any, tmp: Any) -> Any:
    """Bitwise exclusive or (O-1202)."""

def xors(lhs: Any, rhs: Any, tmp: Any) -> Any:
    """Bitwise exclusive or (O-1202)."""
