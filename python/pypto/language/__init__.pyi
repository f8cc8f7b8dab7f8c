# SPDX-License-Identifier: Apache-2.0
# Written by tools/gen_stubs.py from the operation table; do not edit.
from enum import IntEnum
from typing import Any

from pypto._core import DataType as DataType
from pypto._core import DynVar as DynVar
from pypto.language import tensor as tensor
from pypto.language import tile as tile
from pypto.language import system as system
from pypto.language import array as array
from pypto.language import prefetch as prefetch
from pypto.language import optimizations as optimizations
from pypto.language import adir as adir
from pypto.language import distributed as distributed
from pypto.language import parser as parser
from pypto.language._functions import InlineFunction as InlineFunction
from pypto.language._functions import function as function
from pypto.language._functions import inline as inline
from pypto.language._functions import program as program
from pypto.language._jit import JITFunction as JITFunction
from pypto.language._jit import jit as jit
from pypto.language._text import parse as parse
from pypto.language._text import loads as loads
from pypto.language._text import parse_program as parse_program
from pypto.language._text import loads_program as loads_program

# Types: any annotation of the language is accepted by a type checker.
Array: Any
AsyncEvent: Any
AsyncEventType: Any
AsyncSession: Any
AsyncSessionType: Any
InOut: Any
IntLike: Any
MemRef: Any
MemRefType: Any
Out: Any
PrefetchAsyncContext: Any
PrefetchAsyncContextType: Any
Ptr: Any
PtrType: Any
RUNTIME: Any
Scalar: Any
TaskId: Any
Tensor: Any
TensorView: Any
Tile: Any
TileView: Any
Tuple: Any
def dynamic(name: Any) -> Any:
    """Make a dynamic dimension symbol; ``name`` must be an identifier (01 L-29)."""


BOOL: DataType
INT4: DataType
INT8: DataType
INT16: DataType
INT32: DataType
INT64: DataType
INDEX: DataType
UINT4: DataType
UINT8: DataType
UINT16: DataType
UINT32: DataType
UINT64: DataType
FP4: DataType
FP8E4M3FN: DataType
FP8E5M2: DataType
FP16: DataType
FP32: DataType
FP8E8M0: DataType
BF16: DataType
HF4: DataType
HF8: DataType
TASK_ID: DataType
AUTO: int

class FunctionType(IntEnum):
    Opaque = 0
    Orchestration = 1
    InCore = 2
    AIC = 3
    AIV = 4
    Group = 5
    Spmd = 6
    Inline = 7
    Graph = 8

class Level(IntEnum):
    AIV = 0
    AIC = 1
    CORE_GROUP = 2
    CHIP_DIE = 3
    CHIP = 4
    HOST = 5
    CLUSTER_0 = 6
    CLUSTER_1 = 7
    CLUSTER_2 = 8
    GLOBAL = 9
    L2CACHE = 3
    PROCESSOR = 4
    UMA = 4
    NODE = 5
    POD = 6
    CLOS1 = 7
    CLOS2 = 8

class Role(IntEnum):
    Orchestrator = 0
    SubWorker = 1

class SplitMode(IntEnum):
    NONE = 0
    UP_DOWN = 1
    LEFT_RIGHT = 2

class MemorySpace(IntEnum):
    DDR = 0
    Vec = 1
    Mat = 2
    Left = 3
    Right = 4
    Acc = 5
    Bias = 6
    ScalarLocal = 7
    LeftScale = 8
    RightScale = 9

class TensorLayout(IntEnum):
    ND = 0
    DN = 1
    NZ = 2
    MX_A_ZZ = 3
    MX_B_NN = 4

class TileLayout(IntEnum):
    none_box = 0
    row_major = 1
    col_major = 2

class PadValue(IntEnum):
    null = 0
    zero = 1
    max = 2
    min = 3

class CompactMode(IntEnum):
    null = 0
    normal = 1

class AtomicType(IntEnum):
    None_ = 0
    Add = 1

class PipeType(IntEnum):
    MTE1 = 0
    MTE2 = 1
    MTE3 = 2
    M = 3
    V = 4
    S = 5
    FIX = 6
    ALL = 7

class ForKind(IntEnum):
    Sequential = 0
    Parallel = 1
    Unroll = 2
    Pipeline = 3

class ScopeMode(IntEnum):
    AUTO = 0
    MANUAL = 1

Mem = MemorySpace
ND: TensorLayout
DN: TensorLayout
NZ: TensorLayout
MX_A_ZZ: TensorLayout
MX_B_NN: TensorLayout

def range(*args: Any, init_values: Any = ..., attrs: Any = ...) -> Any:
    """Iterate in order: ``for i in pl.range(start, stop, step)`` (01 L-93)."""

def parallel(*args: Any, init_values: Any = ..., attrs: Any = ...) -> Any:
    """Iterate with iterations declared independent (01 L-99)."""

def unroll(*args: Any, attrs: Any = ...) -> Any:
    """Repeat the body while the program is read; the loop variable is a constant (01 L-101)."""

def pipeline(*args: Any, stage: Any = ..., init_values: Any = ..., attrs: Any = ...) -> Any:
    """Iterate like ``pl.range``; ``stage`` iterations may overlap (01 L-100)."""

def while_(*args: Any, init_values: Any = ...) -> Any:
    """Explicit while loop: ``for (x,) in pl.while_(init_values=(x0,))`` (01 L-102)."""

def yield_(*values: Any) -> Any:
    """Hand values over to the next iteration or out of a branch (01 L-92, L-97)."""

def cond(condition: Any) -> Any:
    """Condition of a ``pl.while_`` loop (01 L-102)."""

def const(value: Any, dtype: Any) -> Any:
    """A constant of exactly that element type (01 L-13)."""

def static_print(*args: Any) -> Any:
    """Print while the program is read (01 L-105)."""

def static_assert(condition: Any, message: Any = ...) -> Any:
    """Check a compile-time condition while the program is read (01 L-106)."""

def func_attr(attrs: Any) -> Any:
    """Attributes of the function, as its first statement (01 L-56)."""

def at(
    level: Any = ...,
    role: Any = ...,
    *,
    optimizations: Any = ...,
    deps: Any = ...,
    no_dep_args: Any = ...,
    dumps: Any = ...,
    allow_early_resolve: Any = ...,
    name_hint: Any = ...,
    windowize: Any = ...,
) -> Any:
    """Place a body at a level of the machine; ``pl.Level.CORE_GROUP`` makes it a kernel (01 L-109)."""

def cluster(*, name_hint: Any = ...) -> Any:
    """Schedule cube and vector kernels together on one cluster (01 L-115)."""

def spmd(
    core_num: Any = ...,
    *,
    sync_start: Any = ...,
    name_hint: Any = ...,
    optimizations: Any = ...,
    deps: Any = ...,
    allow_early_resolve: Any = ...,
    predicate: Any = ...,
) -> Any:
    """Run a kernel body as ``core_num`` blocks (01 L-116)."""

def split_aiv(n: Any, *, mode: Any = ...) -> Any:
    """Run a body on the two vector lanes of a cluster (01 L-122)."""

def scope(*, mode: Any = ...) -> Any:
    """Lifetime scope of created tensors (01 L-121)."""

def manual_scope() -> Any:
    """A scope in which only explicit dependencies order tasks (01 L-121, L-166)."""

def submit(*args: Any, **kwargs: Any) -> Any:
    """Submit a kernel as a task and take its handle (01 L-130)."""

def spmd_submit(*args: Any, **kwargs: Any) -> Any:
    """Submit a kernel over several blocks (01 L-130)."""

def no_dep(tensor: Any) -> Any:
    """Leave an argument out of the automatic dependencies (01 L-138)."""

def dump_tag(tensor: Any) -> Any:
    """Mark a tensor for the argument dump (01 L-139)."""

def split(mode: Any, *, slot_num: Any = ...) -> Any:
    """Divide a mixed kernel's vector work between the two lanes (01 L-114)."""

def cross_core_slot(*, slot_num: Any) -> Any:
    """Depth of the channel between cube and vector core (01 L-114)."""

def abs(input: Any) -> Any:
    """Element-wise absolute value (chapter 02 section 10)."""

def add(lhs: Any, rhs: Any) -> Any:
    """Element-wise lhs + rhs with broadcasting (O-901 - O-905)."""

def addc(lhs: Any, rhs: Any, rhs2: Any) -> Any:
    """lhs + rhs + rhs2, one rounding per step (O-1403)."""

def addsc(lhs: Any, rhs: Any, rhs2: Any) -> Any:
    """lhs + scalar + rhs2, one rounding per step (O-1403)."""

def aic_gather(x: Any, *, split: Any = ...) -> Any:
    """Joins the lanes' values for the cube (O-2108)."""

def aic_initialize_pipe(
    c2v_consumer_buf: Any = ...,
    v2c_consumer_buf: Any = ...,
    *,
    dir_mask: Any,
    slot_size: Any,
    slot_num: Any = ...,
    local_slot_num: Any = ...,
    id: Any = ...,
) -> Any:
    """Sets up a cross-core pipe on the cube side (O-2101)."""

def aiv_initialize_pipe(
    c2v_consumer_buf: Any = ...,
    v2c_consumer_buf: Any = ...,
    *,
    dir_mask: Any,
    slot_size: Any,
    slot_num: Any = ...,
    local_slot_num: Any = ...,
    id: Any = ...,
) -> Any:
    """Sets up a cross-core pipe on the vector side (O-2101)."""

def aiv_shard(x: Any, *, split: Any = ..., lane_stride: Any = ...) -> Any:
    """This lane's part of a cube value (O-2108)."""

def and_(lhs: Any, rhs: Any) -> Any:
    """Bitwise and (O-1201)."""

def ands(lhs: Any, rhs: Any) -> Any:
    """Bitwise and with a scalar (O-1201)."""

def arange(start: Any, shape: Any, dtype: Any = ..., descending: Any = ...) -> Any:
    """start + k (or start - k) along the last axis (O-505)."""

def assemble(target: Any, source: Any, offset: Any, *, atomic: Any = ...) -> Any:
    """Writes source into target at offset (O-706); on tiles a new value (O-707)."""

def batch_matmul(lhs: Any, rhs: Any) -> Any:
    """Batched matrix product of tiles (O-1808)."""

def cast(input: Any, target_type: Any, mode: Any = ...) -> Any:
    """Element-wise conversion (chapter 02 section 11)."""

def cmp(lhs: Any, rhs: Any, cmp_type: Any = ...) -> Any:
    """Comparison: 0/1 tensor (O-1301) or packed mask tile (O-1302)."""

def cmps(lhs: Any, rhs: Any, cmp_type: Any = ...) -> Any:
    """Comparison of a tile with a scalar: packed mask tile (O-1302)."""

def col_argmax(input: Any, tmp_tile: Any = ...) -> Any:
    """Row index of the extremum of each column (chapter 02 section 15)."""

def col_argmin(input: Any, tmp_tile: Any = ...) -> Any:
    """Row index of the extremum of each column (chapter 02 section 15)."""

def col_expand(target: Any, col_vec: Any) -> Any:
    """out[i,j] = col_vec[0,j] (O-1603)."""

def col_expand_add(lhs: Any, rhs: Any) -> Any:
    """a + v with v[0,j] spread down the column (O-1601)."""

def col_expand_div(lhs: Any, rhs: Any) -> Any:
    """a / v with v[0,j] spread down the column (O-1601)."""

def col_expand_expdif(lhs: Any, rhs: Any) -> Any:
    """exp(a - v) with v[0,j] spread down the column (O-1601)."""

def col_expand_max(lhs: Any, rhs: Any) -> Any:
    """max(a, v) with v[0,j] spread down the column (O-1601)."""

def col_expand_min(lhs: Any, rhs: Any) -> Any:
    """min(a, v) with v[0,j] spread down the column (O-1601)."""

def col_expand_mul(lhs: Any, rhs: Any) -> Any:
    """a * v with v[0,j] spread down the column (O-1601)."""

def col_expand_sub(lhs: Any, rhs: Any) -> Any:
    """a - v with v[0,j] spread down the column (O-1601)."""

def col_max(input: Any) -> Any:
    """max down the rows (chapter 02 section 15)."""

def col_min(input: Any) -> Any:
    """min down the rows (chapter 02 section 15)."""

def col_prod(input: Any) -> Any:
    """prod down the rows (chapter 02 section 15)."""

def col_sum(input: Any, tmp_tile: Any = ...) -> Any:
    """Sum down the rows, in the order of O-1505."""

def concat(src0: Any, src1: Any) -> Any:
    """Columns of src0 followed by columns of src1 (O-709)."""

def cos(input: Any) -> Any:
    """Element-wise cosine, radians (chapter 02 section 10)."""

def create_l1(shape: Any, dtype: Any, transpose: Any = ...) -> Any:
    """On-chip tensor resident in Mat (O-503)."""

def create_tensor(
    shape: Any, dtype: Any, layout: Any = ..., manual_dep: Any = ..., init_value: Any = ...
) -> Any:
    """Fresh tensor storage; contents unspecified unless init_value is given (O-501)."""

def create_tile(
    shape: Any, dtype: Any, target_memory: Any = ..., transpose: Any = ..., *, flat_layout: Any = ...
) -> Any:
    """Fresh tile of constant shape in an on-chip memory; contents unspecified (O-502)."""

def dim(tensor: Any, axis: Any) -> Any:
    """Extent of an axis (O-603)."""

def div(lhs: Any, rhs: Any, high_precision: Any = ...) -> Any:
    """Element-wise lhs / rhs (O-903)."""

def exp(input: Any) -> Any:
    """Element-wise e^x (chapter 02 section 10)."""

def expand_clone(src: Any, target: Any) -> Any:
    """Copies src into target with one broadcast axis (O-1605)."""

def expands(target: Any, scalar: Any) -> Any:
    """Target's shape filled with a scalar (O-1604)."""

def fillpad(value: Any, pad_value: Any = ...) -> Any:
    """Copy whose cells outside the valid region hold the pad value (O-1702)."""

def fillpad_expand(value: Any, shape: Any, pad_value: Any = ...) -> Any:
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

def import_peer_buffer(*, name: Any, peer_func: Any) -> Any:
    """Names the consumer's channel storage on the producer (O-2102)."""

def load(
    tensor: Any, offsets: Any, shapes: Any, valid_shape: Any = ..., target_memory: Any = ..., clamp: Any = ...
) -> Any:
    """Reads a window of a tensor into a tile (O-701)."""

def log(input: Any, high_precision: Any = ...) -> Any:
    """Element-wise natural logarithm (chapter 02 section 10)."""

def lrelu(tile: Any, slope: Any) -> Any:
    """x if x > 0 else slope * x."""

def matmul(
    lhs: Any, rhs: Any, out_dtype: Any = ..., a_trans: Any = ..., b_trans: Any = ..., c_matrix_nz: Any = ...
) -> Any:
    """Matrix product (O-1801 - O-1806)."""

def matmul_acc(
    acc: Any, lhs: Any, rhs: Any, a_trans: Any = ..., b_trans: Any = ..., init_cond: Any = ...
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
    *,
    exhausted: Any = ...,
    block_len: Any = ...,
) -> Any:
    """Merges sorted runs (O-2002, O-2003)."""

def mscatter(src: Any, idx: Any, output_tensor: Any) -> Any:
    """Scatter into global memory by an index tile, a5 (O-1924)."""

def mul(lhs: Any, rhs: Any) -> Any:
    """Element-wise lhs * rhs with broadcasting (O-901 - O-905)."""

def neg(input: Any) -> Any:
    """Element-wise -x (chapter 02 section 10)."""

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
    dtype: Any = ...,
    rounds: Any = ...,
) -> Any:
    """Philox-4x32 random words (O-507); a5 only."""

def read(src: Any, offset: Any) -> Any:
    """One element as a scalar (O-601)."""

def recip(input: Any, high_precision: Any = ...) -> Any:
    """Element-wise 1/x (chapter 02 section 10)."""

def reinterpret_view(data: Any, dtype: Any, *, shape: Any = ...) -> Any:
    """Same bits under another dtype (O-810)."""

def relu(tile: Any) -> Any:
    """max(x, 0) (chapter 02 section 14)."""

def rem(lhs: Any, rhs: Any, tmp: Any) -> Any:
    """Element-wise floor remainder, sign of the divisor (O-906)."""

def rems(lhs: Any, rhs: Any, tmp: Any) -> Any:
    """Element-wise floor remainder, sign of the divisor (O-906)."""

def reserve_buffer(*, name: Any, size: Any, base: Any = ...) -> Any:
    """Reserves channel storage on the consumer (O-2102)."""

def reshape(input: Any, shape: Any) -> Any:
    """Same cells in row-major order under another shape (O-805)."""

def row_argmax(input: Any, tmp_tile: Any = ...) -> Any:
    """argmax along the last axis (chapter 02 section 15)."""

def row_argmin(input: Any, tmp_tile: Any = ...) -> Any:
    """argmin along the last axis (chapter 02 section 15)."""

def row_expand(target: Any, row_vec: Any) -> Any:
    """out[i,j] = row_vec[i,0] (O-1603)."""

def row_expand_add(lhs: Any, rhs: Any, tmp: Any = ...) -> Any:
    """a + v with v[i,0] spread along the row (O-1602)."""

def row_expand_div(lhs: Any, rhs: Any) -> Any:
    """a / v with v[i,0] spread along the row (O-1601)."""

def row_expand_expdif(lhs: Any, rhs: Any) -> Any:
    """exp(a - v) with v[i,0] spread along the row (O-1601)."""

def row_expand_max(lhs: Any, rhs: Any) -> Any:
    """max(a, v) with v[i,0] spread along the row (O-1601)."""

def row_expand_min(lhs: Any, rhs: Any) -> Any:
    """min(a, v) with v[i,0] spread along the row (O-1601)."""

def row_expand_mul(lhs: Any, rhs: Any) -> Any:
    """a * v with v[i,0] spread along the row (O-1601)."""

def row_expand_sub(lhs: Any, rhs: Any) -> Any:
    """a - v with v[i,0] spread along the row (O-1601)."""

def row_max(input: Any, tmp_tile: Any = ...) -> Any:
    """max along the last axis (chapter 02 section 15)."""

def row_min(input: Any, tmp_tile: Any = ...) -> Any:
    """min along the last axis (chapter 02 section 15)."""

def row_prod(input: Any, tmp_tile: Any = ...) -> Any:
    """prod along the last axis (chapter 02 section 15)."""

def row_sum(input: Any, tmp_tile: Any = ...) -> Any:
    """sum along the last axis (chapter 02 section 15)."""

def rsqrt(input: Any, high_precision: Any = ...) -> Any:
    """Element-wise 1/sqrt(x) (O-1002)."""

def scatter(
    input: Any, dim: Any = ..., index: Any = ..., src: Any = ..., *, mask_pattern: Any = ..., dst: Any = ...
) -> Any:
    """Index or mask scatter of tensors (O-1920)."""

def scatter_update(input: Any, dim: Any = ..., index: Any = ..., src: Any = ...) -> Any:
    """Replaces rows addressed by an index (O-1923); in place on tiles."""

def sel(mask: Any, lhs: Any, rhs: Any, tmp: Any) -> Any:
    """lhs where the mask bit is set, else rhs (O-1303)."""

def sels(mask: Any, src: Any, tmp: Any, scalar: Any) -> Any:
    """src where the mask bit is set, else scalar (O-1304)."""

def set_validshape(input: Any, valid_rows: Any, valid_cols: Any) -> Any:
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
    input: Any,
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

def store(tile: Any, offsets: Any, output_tensor: Any, shapes: Any = ..., *, atomic: Any = ...) -> Any:
    """Writes a tile's valid region into a tensor (O-703)."""

def sub(lhs: Any, rhs: Any) -> Any:
    """Element-wise lhs - rhs with broadcasting (O-901 - O-905)."""

def subc(lhs: Any, rhs: Any, rhs2: Any) -> Any:
    """lhs - rhs - rhs2, one rounding per step (O-1403)."""

def subsc(lhs: Any, rhs: Any, rhs2: Any) -> Any:
    """lhs - scalar - rhs2, one rounding per step (O-1403)."""

def tfree_to_aic(tile: Any, *, split: Any = ..., id: Any = ...) -> Any:
    """Returns the slot of a popped tile to the cube (O-2103)."""

def tfree_to_aiv(tile: Any, *, split: Any = ..., id: Any = ...) -> Any:
    """Returns the slot of a popped tile to the vector side (O-2103)."""

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

def transpose(input: Any, axis1: Any, axis2: Any, tmp_tile: Any = ...) -> Any:
    """Swaps two axes (O-807)."""

def tri(diagonal: Any, shape: Any, valid_shape: Any = ..., dtype: Any = ..., upper: Any = ...) -> Any:
    """Triangular 0/1 tile (O-506)."""

def write(dst: Any, offset: Any, value: Any) -> Any:
    """Writes one element in place and returns the target (O-602)."""

def xor(lhs: Any, rhs: Any, tmp: Any = ...) -> Any:
    """Bitwise exclusive or (O-1202)."""

def xors(lhs: Any, rhs: Any, tmp: Any = ...) -> Any:
    """Bitwise exclusive or (O-1202)."""
