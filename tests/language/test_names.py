# SPDX-License-Identifier: Apache-2.0
"""Names of `pl` and `pld`: 01 sections 1 and 2, 03 section 2."""

from __future__ import annotations

import copy
import importlib
import pickle

import pypto
import pypto.language as pl
import pypto.language.distributed as pld
import pytest
from pypto import ir

GROUPS = {
    "decorators": "jit JITFunction function program inline InlineFunction",
    "text": "parse loads parse_program loads_program parser",
    "annotations": "Tensor Tile Scalar Array Tuple Out InOut DynVar dynamic RUNTIME IntLike MemRef MemRefType "
    "Ptr PtrType "
    "TensorView TileView TaskId PrefetchAsyncContext AsyncEvent AsyncSession",
    "loops": "range parallel unroll pipeline while_ yield_ cond",
    "compile time": "const static_print static_assert func_attr",
    "regions": "at cluster spmd split_aiv scope ScopeMode manual_scope",
    "scheduling": "submit spmd_submit no_dep dump_tag adir",
    "optimizations": "optimizations split cross_core_slot",
    "modules": "tensor tile system array prefetch",
    "enums": "FunctionType ForKind AtomicType Level Role SplitMode MemorySpace Mem PipeType TensorLayout "
    "TileLayout PadValue "
    "CompactMode",
    "shorthands": "ND DN NZ MX_A_ZZ MX_B_NN AUTO",
    "any kind": "add sub mul div part_add part_mul part_max part_min maximum minimum exp log cast concat reshape "
    "reinterpret_view transpose slice matmul batch_matmul matmul_acc row_max row_sum row_min row_prod col_sum col_max "
    "col_min col_prod row_argmax row_argmin col_argmax col_argmin row_expand row_expand_add "
    "row_expand_sub row_expand_mul "
    "row_expand_div row_expand_max row_expand_min row_expand_expdif col_expand col_expand_add col_expand_sub "
    "col_expand_mul col_expand_div col_expand_max col_expand_min col_expand_expdif expands neg abs recip read write "
    "assemble cos sin gather_row mrgsort scatter_update sort32 sqrt rsqrt fillpad fillpad_expand cmp "
    "set_validshape fmod "
    "fmods and_ ands or_ ors xor xors shl shls shr shrs not_",
    "tile only": "create_tile load store move gatherb mgather mscatter relu lrelu prelu matmul_bias "
    "matmul_mx matmul_mx_acc "
    "matmul_mx_bias gemv gemv_acc gemv_bias cmps rem rems maximums minimums addc subc addsc subsc sel sels "
    "tri aiv_shard "
    "aic_gather",
    "scalar only": "min max",
    "tensor only": "create_tensor dim full scatter gather arange paged_gather random expand_clone "
    "create_l1 get_block_idx "
    "get_block_num get_subblock_idx",
    "system": "tpush_to_aiv tpush_to_aic tpop_from_aic tpop_from_aiv tfree_to_aic tfree_to_aiv aic_initialize_pipe "
    "aiv_initialize_pipe reserve_buffer import_peer_buffer",
}


@pytest.mark.parametrize("group", GROUPS)
def test_every_name_exists(group):  # L-2, L-3
    missing = [name for name in GROUPS[group].split() if not hasattr(pl, name)]
    assert missing == []


def test_one_object_per_enum():  # L-4
    from pypto.pypto_core import ir as core_ir

    assert pl.Mem is pl.MemorySpace is ir.MemorySpace is core_ir.MemorySpace
    for name in ("FunctionType", "Level", "Role", "SplitMode", "TensorLayout", "TileLayout", "PadValue", "PipeType"):
        assert getattr(pl, name) is getattr(ir, name)
    assert pld.AtomicType is pl.AtomicType
    assert pl.ND is pl.TensorLayout.ND
    assert pypto.jit.jit is pl.jit and pypto.jit.JITFunction is pl.JITFunction


def test_level_aliases_are_members():  # L-45
    assert pl.Level.POD is pl.Level.CLUSTER_0 and pl.Level.NODE is pl.Level.HOST
    assert pl.Level.L2CACHE is pl.Level.CHIP_DIE and pl.Level.UMA is pl.Level.PROCESSOR is pl.Level.CHIP
    assert [int(m) for m in pl.Level] == list(range(10))


def test_enum_values():  # L-44, L-45, L-142, 03 2.2
    assert int(pl.FunctionType.Graph) == 8 and pl.FunctionType.AIV.name == "AIV"
    assert int(pl.Mem.Acc) == 5 and int(pl.SplitMode.LEFT_RIGHT) == 2
    assert (int(pld.NotifyOp.Set), int(pld.WaitCmp.Ge), int(pld.ReduceOp.Prod), int(pl.AtomicType.None_)) == (
        1,
        1,
        3,
        0,
    )
    assert repr(pl.MemorySpace.Vec) == "pl.MemorySpace.Vec" and str(pld.ReduceOp.Max) == "ReduceOp.Max"


def test_unknown_member_lists_the_members():  # L-42
    with pytest.raises(
        pl.parser.diagnostics.ParserSyntaxError, match=r"Unknown FunctionType value: Incore.*InCore"
    ) as info:
        pl.FunctionType.Incore
    assert isinstance(info.value, AttributeError)
    assert "did you mean FunctionType.InCore" in str(info.value)


@pytest.mark.parametrize(
    "module",
    [
        "tensor",
        "tile",
        "system",
        "array",
        "prefetch",
        "optimizations",
        "adir",
        "parser",
        "parser.diagnostics",
        "distributed",
        "distributed.tensor",
        "distributed.system",
    ],
)
def test_namespaces_are_importable(module):
    found = importlib.import_module(f"pypto.language.{module}")
    target = pl
    for part in module.split("."):
        target = getattr(target, part)
    assert found is target


def test_namespaces_hold_their_operations():  # O-106
    assert {"create", "ci", "arange", "view", "adds"} <= set(pl.tensor.__all__)
    assert {"create", "full", "extract", "MaskPattern", "scatter_mask"} <= set(pl.tile.__all__)
    assert pl.tile.MaskPattern.P1000 == 6
    assert set(pld.system.__all__) == {"defer_wait", "get_comm_ctx", "notify", "nranks", "rank", "wait", "world_size"}
    assert set(pld.tensor.__all__) == set(
        "all_to_all all_to_all_v alloc_window_buffer allgather allreduce barrier broadcast get put "
        "remote_store reduce_scatter "
        "window".split()
    )
    assert set(pld.tile.__all__) == {"get", "put", "remote_load", "remote_store"}


def test_pld_exports():  # D-1
    assert sorted(pld.__all__) == sorted(
        "AtomicType CommCtx CommCtxType DistributedTensor NotifyOp ReduceOp WaitCmp alloc_window_buffer "
        "get_comm_ctx nranks "
        "rank remote_load remote_store system tensor tile window world_size".split()
    )
    assert issubclass(pld.DistributedTensor, pl.Tensor)  # T-2


def test_unknown_names_suggest():
    with pytest.raises(AttributeError, match="has no attribute 'FP33'") as info:
        pl.FP33
    assert "FP32" in str(info.value)
    with pytest.raises(AttributeError, match="row_summ"):
        pl.tensor.row_summ


def test_operations_have_docs_and_signatures():
    import inspect

    signature = inspect.signature(pl.load)
    assert list(signature.parameters)[:3] == ["tensor", "offsets", "shapes"]
    assert "O-701" in pl.load.__doc__
    with pytest.raises(RuntimeError, match=r"pl\.add is only valid inside a decorated function"):
        pl.add(1, 2)


# ------------------------------------------------------------------ L-5


@pytest.mark.parametrize(("name", "function"), [("pl.submit", pl.submit), ("pl.spmd_submit", pl.spmd_submit),
                                                ("pl.system.task_dummy", pl.system.task_dummy)])  # fmt: skip
def test_task_names_outside_a_body(name, function):
    with pytest.raises(RuntimeError, match=name.replace(".", r"\.")) as info:
        function(deps=[])
    assert "only valid inside a decorated function" in str(info.value)


def test_directives_outside_a_body():
    x = object()
    assert pl.yield_(x) is x and pl.yield_(1, 2) == (1, 2)
    assert pl.const(3, pl.INT32) == 3 and pl.no_dep(x) is x
    assert pl.cond(True) is None and pl.static_print(1) is None and pl.static_assert(False, "m") is None
    assert pl.func_attr({}) is None and pl.dump_tag(x) is None


def test_regions_outside_a_body_do_not_crash():
    for region in (pl.at(level=pl.Level.CORE_GROUP), pl.cluster(), pl.spmd(4), pl.scope(), pl.manual_scope()):
        with region:
            pass
    for loop in (pl.range(3), pl.parallel(0, 3), pl.pipeline(3, stage=2), pl.unroll(3), pl.spmd(2), pl.split_aiv(2)):
        list(loop)


def test_value_errors_outside_a_body():
    with pytest.raises(ValueError):
        pl.while_()
    for n in (3, True, "2"):
        with pytest.raises(ValueError, match="must be the integer 2"):
            pl.split_aiv(n)
    for name in ("not an id", "", "1x", 7):
        with pytest.raises(ValueError):
            pl.dynamic(name)


# ------------------------------------------------------------------ dtypes: L-6, L-7

TABLE = """
BOOL bool 1 1 0x00 bool
INT4 int4 4 1 0x10 unknown
INT8 int8 8 1 0x11 int8_t
INT16 int16 16 2 0x12 int16_t
INT32 int32 32 4 0x13 int32_t
INT64 int64 64 8 0x14 int64_t
INDEX index 64 8 0x15 int64_t
UINT4 uint4 4 1 0x20 unknown
UINT8 uint8 8 1 0x21 uint8_t
UINT16 uint16 16 2 0x22 uint16_t
UINT32 uint32 32 4 0x23 uint32_t
UINT64 uint64 64 8 0x24 uint64_t
FP4 fp4 4 1 0x30 float4_e2m1x2_t
FP8E4M3FN fp8e4m3fn 8 1 0x31 float8_e4m3_t
FP8E5M2 fp8e5m2 8 1 0x32 float8_e5m2_t
FP16 fp16 16 2 0x33 half
FP32 fp32 32 4 0x34 float
FP8E8M0 fp8e8m0 8 1 0x36 float8_e8m0_t
BF16 bfloat16 16 2 0x40 bfloat16_t
HF4 hf4 4 1 0x41 unknown
HF8 hf8 8 1 0x42 unknown
TASK_ID task_id 64 8 0x50 unknown
"""


@pytest.mark.parametrize("row", TABLE.strip().splitlines(), ids=lambda row: row.split()[0])
def test_dtype_table(row):
    name, text, bits, size, code, c_name = row.split()
    dtype = getattr(pl, name)
    assert (str(dtype), repr(dtype), dtype.to_string()) == (text, text, text)
    assert (dtype.get_bit(), dtype.get_byte(), dtype.code(), dtype.to_c_type_string()) == (
        int(bits), int(size), int(code, 16), c_name)  # fmt: skip
    assert dtype == pypto.DataType(int(code, 16)) == getattr(pypto.DataType, name)
    assert hash(dtype) == hash(pypto.DataType(int(code, 16)))
    if name != "TASK_ID":
        assert getattr(pypto, f"DT_{name}") == dtype == getattr(ir, name)


def test_dtype_kinds():
    names = {row.split()[0]: getattr(pl, row.split()[0]) for row in TABLE.strip().splitlines()}
    signed = {n for n, d in names.items() if d.is_signed_int()}
    unsigned = {n for n, d in names.items() if d.is_unsigned_int()}
    assert signed == {"INT4", "INT8", "INT16", "INT32", "INT64", "INDEX"}
    assert unsigned == {"UINT4", "UINT8", "UINT16", "UINT32", "UINT64"}
    assert {n for n, d in names.items() if d.is_int()} == signed | unsigned
    assert {n for n, d in names.items() if d.is_float()} == set(names) - signed - unsigned - {"BOOL", "TASK_ID"}


def test_dtype_values_copy_and_pickle():
    assert copy.deepcopy(pl.BF16) == pl.BF16 and pickle.loads(pickle.dumps(pl.BF16)) == pl.BF16
    assert pl.FP32 != pl.FP16 and pl.FP32 != "fp32"
    assert pypto.DataType.DEFAULT_CONST_INT == pl.INT64 and pypto.DataType.DEFAULT_CONST_FLOAT == pl.FP32
    assert {pl.FP32: 1}[pypto.DataType(0x34)] == 1
    with pytest.raises(ValueError, match="no element type with code 153"):
        pypto.DataType(0x99)


# ------------------------------------------------------------------ symbols, views


def test_symbols():  # L-29, L-31
    m, n = pl.dynamic("M"), pl.DynVar("N")
    assert m.name == "M" and m == pl.dynamic("M") and m != n and isinstance(m, pl.DynVar)
    assert repr(m * 2 + n) == repr(pl.dynamic("M") * 2 + pl.dynamic("N"))
    assert (m // 4) == (pl.dynamic("M") // 4) and (m // 4) != (m // 8)
    for expression in (m + 1, 2 * m, m - n, m // 2, m % 8, 7 - m):
        assert expression == expression
    with pytest.raises(TypeError):
        m + 1.5


def test_runtime_marker_refuses_arithmetic():  # L-34
    for use in (lambda: pl.RUNTIME + 1, lambda: 2 * pl.RUNTIME, lambda: pl.RUNTIME < 3, lambda: int(pl.RUNTIME)):
        with pytest.raises(TypeError, match=r"pl\.RUNTIME"):
            use()
    assert copy.deepcopy(pl.RUNTIME) is pl.RUNTIME


def test_annotations_remember_what_was_written():
    text = repr(pl.Out[pl.Tensor[[4, pl.dynamic("M")], pl.FP32, pl.NZ]])
    assert text == "pl.Out[pl.Tensor[[4, M], pl.FP32, pl.TensorLayout.NZ]]"
    assert repr(pl.Tensor([2, 3], pl.INT8)) == "pl.Tensor[[2, 3], pl.INT8]"
    assert pl.TaskId == pl.Scalar[pl.TASK_ID]  # L-11


def test_views():  # L-28, L-36, L-37, L-39
    errors = pl.parser.diagnostics
    view = pl.TensorView(valid_shape=[16, pl.dynamic("V")], layout=pl.TensorLayout.ND)
    assert view == pl.TensorView(valid_shape=[16, pl.dynamic("V")], layout=pl.TensorLayout.ND)
    with pytest.raises(errors.ParserTypeError, match="Unknown TensorView keyword argument"):
        pl.TensorView(strides=[1])
    with pytest.raises(errors.ParserTypeError, match="Unknown TileView keyword argument"):
        pl.TileView(valid=[1])
    with pytest.raises(errors.ParserTypeError, match="Slot index 2 is out of range"):
        pl.MemRef(slots=2)[2]
    with pytest.raises(errors.ParserTypeError, match="single-slot allocation cannot be subscripted"):
        pl.MemRef("buf")[0]
