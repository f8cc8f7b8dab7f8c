# SPDX-License-Identifier: Apache-2.0
# Written by tools/gen_stubs.py from the operation table; do not edit.
from typing import Any

def abs(input: Any) -> Any:
    """Element-wise absolute value (chapter 02 section 10)."""

def add(lhs: Any, rhs: Any) -> Any:
    """Element-wise lhs + rhs with broadcasting (O-901 - O-905)."""

def adds(lhs: Any, rhs: Any) -> Any:
    """Array with scalar: element-wise add (O-904)."""

def alloc(memory_space: Any, size: Any, *, pinned: Any = ...) -> Any:
    """Raw reservation in printed programs (O-107)."""

def and_(lhs: Any, rhs: Any) -> Any:
    """Bitwise and (O-1201)."""

def ands(lhs: Any, rhs: Any) -> Any:
    """Bitwise and with a scalar (O-1201)."""

def arange(start: Any, shape: Any, dtype: Any = ..., descending: Any = ...) -> Any:
    """start + k (or start - k) along the last axis (O-505)."""

def assemble(target: Any, source: Any, offset: Any, *, atomic: Any = ...) -> Any:
    """Writes source into target at offset (O-706); on tiles a new value (O-707)."""

def cast(input: Any, target_type: Any, mode: Any = ...) -> Any:
    """Element-wise conversion (chapter 02 section 11)."""

def ci(start: Any, shape: Any, dtype: Any = ..., descending: Any = ...) -> Any:
    """start + k (or start - k) along the last axis (O-505)."""

def cmp(lhs: Any, rhs: Any, cmp_type: Any = ...) -> Any:
    """Comparison: 0/1 tensor (O-1301) or packed mask tile (O-1302)."""

def col_argmax(input: Any) -> Any:
    """Row index of the extremum of each column (chapter 02 section 15)."""

def col_argmin(input: Any) -> Any:
    """Row index of the extremum of each column (chapter 02 section 15)."""

def col_expand(tensor: Any, col_vec: Any) -> Any:
    """out[i,j] = col_vec[0,j] (O-1603)."""

def col_expand_add(tensor: Any, col_vec: Any) -> Any:
    """a + v with v[0,j] spread down the column (O-1601)."""

def col_expand_div(tensor: Any, col_vec: Any) -> Any:
    """a / v with v[0,j] spread down the column (O-1601)."""

def col_expand_expdif(tensor: Any, col_vec: Any) -> Any:
    """exp(a - v) with v[0,j] spread down the column (O-1601)."""

def col_expand_max(tensor: Any, col_vec: Any) -> Any:
    """max(a, v) with v[0,j] spread down the column (O-1601)."""

def col_expand_min(tensor: Any, col_vec: Any) -> Any:
    """min(a, v) with v[0,j] spread down the column (O-1601)."""

def col_expand_mul(tensor: Any, col_vec: Any) -> Any:
    """a * v with v[0,j] spread down the column (O-1601)."""

def col_expand_sub(tensor: Any, col_vec: Any) -> Any:
    """a - v with v[0,j] spread down the column (O-1601)."""

def col_max(input: Any) -> Any:
    """max down the rows (chapter 02 section 15)."""

def col_min(input: Any) -> Any:
    """min down the rows (chapter 02 section 15)."""

def col_prod(input: Any) -> Any:
    """prod down the rows (chapter 02 section 15)."""

def col_sum(input: Any) -> Any:
    """Sum down the rows, in the order of O-1505."""

def concat(src0: Any, src1: Any) -> Any:
    """Columns of src0 followed by columns of src1 (O-709)."""

def cos(input: Any) -> Any:
    """Element-wise cosine, radians (chapter 02 section 10)."""

def create(shape: Any, dtype: Any, layout: Any = ..., manual_dep: Any = ..., init_value: Any = ...) -> Any:
    """Fresh tensor storage; contents unspecified unless init_value is given (O-501)."""

def create_l1(shape: Any, dtype: Any, transpose: Any = ...) -> Any:
    """On-chip tensor resident in Mat (O-503)."""

def create_tensor(
    shape: Any, dtype: Any, layout: Any = ..., manual_dep: Any = ..., init_value: Any = ...
) -> Any:
    """Fresh tensor storage; contents unspecified unless init_value is given (O-501)."""

def dim(tensor: Any, axis: Any) -> Any:
    """Extent of an axis (O-603)."""

def div(lhs: Any, rhs: Any, high_precision: Any = ...) -> Any:
    """Element-wise lhs / rhs (O-903)."""

def divs(lhs: Any, rhs: Any) -> Any:
    """Array with scalar: element-wise div (O-904)."""

def dump_tag(tensor: Any) -> Any:
    """Mark a tensor for the argument dump (01 L-139)."""

def exp(input: Any) -> Any:
    """Element-wise e^x (chapter 02 section 10)."""

def expand_clone(src: Any, target: Any) -> Any:
    """Copies src into target with one broadcast axis (O-1605)."""

def expands(target: Any, scalar: Any) -> Any:
    """Target's shape filled with a scalar (O-1604)."""

def fillpad(tensor: Any, pad_value: Any = ...) -> Any:
    """Copy whose cells outside the valid region hold the pad value (O-1702)."""

def fillpad_expand(tensor: Any, shape: Any, pad_value: Any = ...) -> Any:
    """Valid region in the origin corner of a larger shape, pad elsewhere (O-1704)."""

def fmod(lhs: Any, rhs: Any) -> Any:
    """Element-wise C fmod, sign of the dividend (O-906)."""

def fmods(lhs: Any, rhs: Any) -> Any:
    """Element-wise C fmod with a scalar (O-906)."""

def full(shape: Any, dtype: Any, value: Any) -> Any:
    """On-chip tensor with every cell equal to a constant (O-504)."""

def gather(
    input: Any,
    dim: Any = ...,
    index: Any = ...,
    *,
    mask_pattern: Any = ...,
    output_dtype: Any = ...,
    kvalue: Any = ...,
    cmp_mode: Any = ...,
    out_cols: Any = ...,
    offset: Any = ...,
    count_dtype: Any = ...,
) -> Any:
    """Index, mask or compare gather of tensors (O-1901)."""

def gather_compare(
    src: Any, kvalue: Any, *, cmp_mode: Any = ..., offset: Any = ..., out_cols: Any, count_dtype: Any = ...
) -> Any:
    """Tensor form of gather_compare (O-1906)."""

def gather_mask(src: Any, mask_pattern: Any, *, output_dtype: Any = ...) -> Any:
    """Columns selected by a mask pattern (O-1904)."""

def gather_row(
    acc: Any,
    src: Any,
    dst_offset: Any,
    src_offset: Any,
    shapes: Any,
    transpose: Any = ...,
    *,
    valid_shape: Any = ...,
) -> Any:
    """Copies one window of global memory into an on-chip accumulator (O-1910)."""

def get_block_idx() -> Any:
    """Index of this block in its launch (chapter 02 section 22)."""

def get_block_num() -> Any:
    """Number of blocks of the launch (chapter 02 section 22)."""

def get_subblock_idx() -> Any:
    """Vector lane, 0 or 1 (chapter 02 section 22)."""

def log(input: Any, high_precision: Any = ...) -> Any:
    """Element-wise natural logarithm (chapter 02 section 10)."""

def matmul(
    lhs: Any, rhs: Any, out_dtype: Any = ..., a_trans: Any = ..., b_trans: Any = ..., c_matrix_nz: Any = ...
) -> Any:
    """Matrix product (O-1801 - O-1806)."""

def matmul_acc(
    acc: Any, lhs: Any, rhs: Any, a_trans: Any = ..., b_trans: Any = ..., init_cond: Any = ...
) -> Any:
    """acc += lhs . rhs in place (O-1805)."""

def maximum(lhs: Any, rhs: Any) -> Any:
    """Element-wise maximum (O-901)."""

def minimum(lhs: Any, rhs: Any) -> Any:
    """Element-wise minimum (O-901)."""

def mrgsort(
    src0: Any,
    src1: Any = ...,
    src2: Any = ...,
    src3: Any = ...,
    *,
    exhausted: Any = ...,
    block_len: Any = ...,
) -> Any:
    """Merges sorted runs (O-2002, O-2003)."""

def mul(lhs: Any, rhs: Any) -> Any:
    """Element-wise lhs * rhs with broadcasting (O-901 - O-905)."""

def muls(lhs: Any, rhs: Any) -> Any:
    """Array with scalar: element-wise mul (O-904)."""

def neg(input: Any) -> Any:
    """Element-wise -x (chapter 02 section 10)."""

def no_dep(tensor: Any) -> Any:
    """Leave an argument out of the automatic dependencies (01 L-138)."""

def not_(input: Any) -> Any:
    """Bitwise complement, INT16 and UINT16 (O-1201)."""

def or_(lhs: Any, rhs: Any) -> Any:
    """Bitwise or (O-1201)."""

def ors(lhs: Any, rhs: Any) -> Any:
    """Bitwise or with a scalar (O-1201)."""

def paged_gather(
    src: Any,
    indices: Any,
    block_table: Any,
    block_size: Any,
    size: Any,
    max_indices: Any,
    *,
    space: Any = ...,
    col_off: Any = ...,
    is_trans: Any = ...,
    is_b_matrix: Any = ...,
) -> Any:
    """Rows of a paged table (O-1911)."""

def part_add(lhs: Any, rhs: Any) -> Any:
    """Combines operands whose valid regions differ (O-1402)."""

def part_max(lhs: Any, rhs: Any) -> Any:
    """Combines operands whose valid regions differ (O-1402)."""

def part_min(lhs: Any, rhs: Any) -> Any:
    """Combines operands whose valid regions differ (O-1402)."""

def part_mul(lhs: Any, rhs: Any) -> Any:
    """Combines operands whose valid regions differ (O-1402)."""

def random(
    key0: Any,
    key1: Any,
    counter0: Any,
    counter1: Any,
    counter2: Any,
    counter3: Any,
    shape: Any,
    dtype: Any = ...,
    rounds: Any = ...,
) -> Any:
    """Philox-4x32 random words (O-507); a5 only."""

def read(tensor: Any, indices: Any) -> Any:
    """One element as a scalar (O-601)."""

def recip(input: Any, high_precision: Any = ...) -> Any:
    """Element-wise 1/x (chapter 02 section 10)."""

def reinterpret_view(data: Any, dtype: Any, *, shape: Any = ...) -> Any:
    """Same bits under another dtype (O-810)."""

def reshape(tensor: Any, shape: Any) -> Any:
    """Same cells in row-major order under another shape (O-805)."""

def row_argmax(input: Any) -> Any:
    """argmax along the last axis (chapter 02 section 15)."""

def row_argmin(input: Any) -> Any:
    """argmin along the last axis (chapter 02 section 15)."""

def row_expand(target: Any, row_vec: Any) -> Any:
    """out[i,j] = row_vec[i,0] (O-1603)."""

def row_expand_add(tensor: Any, row_vec: Any) -> Any:
    """a + v with v[i,0] spread along the row (O-1602)."""

def row_expand_div(tensor: Any, row_vec: Any) -> Any:
    """a / v with v[i,0] spread along the row (O-1601)."""

def row_expand_expdif(tensor: Any, row_vec: Any) -> Any:
    """exp(a - v) with v[i,0] spread along the row (O-1601)."""

def row_expand_max(tensor: Any, row_vec: Any) -> Any:
    """max(a, v) with v[i,0] spread along the row (O-1601)."""

def row_expand_min(tensor: Any, row_vec: Any) -> Any:
    """min(a, v) with v[i,0] spread along the row (O-1601)."""

def row_expand_mul(tensor: Any, row_vec: Any) -> Any:
    """a * v with v[i,0] spread along the row (O-1601)."""

def row_expand_sub(tensor: Any, row_vec: Any) -> Any:
    """a - v with v[i,0] spread along the row (O-1601)."""

def row_max(input: Any) -> Any:
    """max along the last axis (chapter 02 section 15)."""

def row_min(input: Any) -> Any:
    """min along the last axis (chapter 02 section 15)."""

def row_prod(input: Any) -> Any:
    """prod along the last axis (chapter 02 section 15)."""

def row_sum(input: Any) -> Any:
    """sum along the last axis (chapter 02 section 15)."""

def rsqrt(input: Any, high_precision: Any = ...) -> Any:
    """Element-wise 1/sqrt(x) (O-1002)."""

def scatter(
    input: Any, dim: Any = ..., index: Any = ..., src: Any = ..., *, mask_pattern: Any = ..., dst: Any = ...
) -> Any:
    """Index or mask scatter of tensors (O-1920)."""

def scatter_mask(input: Any, dst: Any, mask_pattern: Any) -> Any:
    """Mask scatter of tensors (O-1921)."""

def scatter_update(input: Any, dim: Any = ..., index: Any = ..., src: Any = ...) -> Any:
    """Replaces rows addressed by an index (O-1923); in place on tiles."""

def set_validshape(tensor: Any, valid_rows: Any, valid_cols: Any) -> Any:
    """Sets the valid extents of a rank-2 value (O-811)."""

def shl(lhs: Any, rhs: Any) -> Any:
    """Element-wise shift (O-1203)."""

def shls(lhs: Any, rhs: Any) -> Any:
    """Element-wise shift (O-1203)."""

def shr(lhs: Any, rhs: Any) -> Any:
    """Element-wise shift (O-1203)."""

def shrs(lhs: Any, rhs: Any) -> Any:
    """Element-wise shift (O-1203)."""

def sin(input: Any) -> Any:
    """Element-wise sine, radians (chapter 02 section 10)."""

def slice(
    tensor: Any,
    shape: Any,
    offset: Any,
    valid_shape: Any = ...,
    drop_dims: Any = ...,
    pad_value: Any = ...,
    clamp: Any = ...,
) -> Any:
    """Window: an address of a tensor, a view of a tile (O-801)."""

def sort32(src: Any, idx: Any) -> Any:
    """Sorts blocks of 32 columns into value/index records (O-2001)."""

def sqrt(input: Any) -> Any:
    """Element-wise square root (chapter 02 section 10)."""

def sub(lhs: Any, rhs: Any) -> Any:
    """Element-wise lhs - rhs with broadcasting (O-901 - O-905)."""

def subs(lhs: Any, rhs: Any) -> Any:
    """Array with scalar: element-wise sub (O-904)."""

def transpose(tensor: Any, axis1: Any, axis2: Any) -> Any:
    """Swaps two axes (O-807)."""

def view(tensor: Any, shape: Any = ..., valid_shape: Any = ..., *, layout: Any = ...) -> Any:
    """Reinterprets a tensor in global memory (O-812)."""

def write(tensor: Any, indices: Any, value: Any) -> Any:
    """Writes one element in place and returns the target (O-602)."""

def xor(lhs: Any, rhs: Any) -> Any:
    """Bitwise exclusive or (O-1202)."""

def xors(lhs: Any, rhs: Any) -> Any:
    """Bitwise exclusive or (O-1202)."""
