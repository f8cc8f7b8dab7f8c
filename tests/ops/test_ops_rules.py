# SPDX-License-Identifier: Apache-2.0
"""Rules of chapter 02 that no single operation owns: kinds, places, aliases, capacity, promotion of scalars."""

import warnings

import numpy as np
import pypto.language as pl
import pytest
from opkit import define, operands, run, same
from pypto.runtime import RunConfig, SimOptions, last_report

X = operands("FP32", (16, 64), 201, nan=False)


def numbers(shape=(16, 64), seed=202):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def jit(text, *args, platform="a2a3sim", **sim):
    f = define(text)["f"]
    f(*args, config=RunConfig(platform=platform, sim=SimOptions(**sim) if sim else None))


def test_names_of_the_system_namespace():  # O-105
    assert pl.AUTO == -1
    for name in ("tpush_to_aiv tpush_to_aic tpop_from_aic tpop_from_aiv tfree_to_aic tfree_to_aiv aic_initialize_pipe "
                 "aiv_initialize_pipe reserve_buffer import_peer_buffer").split():  # fmt: skip
        assert getattr(pl, name) is not None and getattr(pl.system, name) is not None


def test_subscripts_are_windows_and_writes():  # O-117, O-813, O-815, O-802
    x = numbers()
    outs = {"o0": np.zeros((4, 64), np.float32), "o1": np.zeros((4, 64), np.float32), "o2": np.zeros(64, np.float32),
            "o3": np.zeros((16, 8), np.float32), "o4": np.zeros((4, 4), np.float32), "o5": np.zeros((16, 64), np.float32)}  # fmt: skip
    run(
        """
        o0[:, :] = x[2:6, :]
        o1[:, :] = pl.slice(x, [4, 64], [2, 0])
        o2[:] = x[n]
        o3[:, :] = x[:, n : n + 8]
        pl.write(o4, [1, 2], x[3, n])
        pl.write(o4, [0, 0], pl.tensor.read(tensor=x, indices=[3, 4]))
        o5[4:8, 16:32] = x[4:8, 16:32]
        o5[n, 0:64] = x[n]
        """,
        "a2a3sim", {"n": ("INT32", 5)}, x=x, **outs,
    )  # fmt: skip
    same(outs["o0"], x[2:6], "subscript:")
    same(outs["o1"], x[2:6], "subscript:")
    same(outs["o2"], x[5], "subscript:")
    same(outs["o3"], np.ascontiguousarray(x[:, 5:13]), "subscript:")
    assert outs["o4"][1, 2] == x[3, 5] and outs["o4"][0, 0] == x[3, 4]
    want = np.zeros((16, 64), np.float32)
    want[4:8, 16:32], want[5] = x[4:8, 16:32], x[5]
    same(outs["o5"], want, "subscript:")


def test_subscripts_of_tiles():  # O-814: a run-time upper bound narrows, a rank below 2 is promoted with a warning
    x = numbers()
    o0, o1 = np.full((16, 64), 7, np.float32), np.zeros((1, 64), np.float32)
    with pytest.warns(UserWarning):
        run(
            """
            t = pl.load(x, [0, 0], [16, 64])
            o0 = pl.store(t[2:n, :], [0, 0], o0)
            o1 = pl.store(t[3], [0, 0], o1)
            """,
            "a2a3sim", {"n": ("INT32", 9)}, x=x, o0=o0, o1=o1,
        )  # fmt: skip
    want = np.full((16, 64), 7, np.float32)
    want[:7] = x[2:9]
    same(o0, want, "subscript:tile")
    same(o1, x[3:4], "subscript:tile")


def test_scalars_keep_their_type():  # O-121, O-120, O-301
    x16, xi = operands("FP16", (4, 16), 203, nan=False), (np.arange(64, dtype=np.int32) - 30).reshape(4, 16)
    x16 = np.where(np.abs(x16) < 100, x16, 1).astype(np.float16)
    outs = {"o0": np.zeros((4, 16), np.float16), "o1": np.zeros((4, 16), np.float32), "o2": np.zeros((4, 16), np.float16),
            "o3": np.zeros((4, 16), np.float32), "o4": np.zeros((4, 16), np.int64)}  # fmt: skip
    run(
        """
        o0[:, :] = pl.mul(x16, 0.1)
        o1[:, :] = pl.mul(x16, pl.const(0.1, pl.FP32))
        o2[:, :] = pl.mul(xi, pl.const(0.5, pl.FP16))
        o3[:, :] = pl.mul(x16, s)
        o4[:, :] = pl.mul(xi, pl.const(3, pl.INT64))
        """,
        "a2a3sim", {"s": ("FP32", 0.1)}, x16=x16, xi=xi, **outs,
    )  # fmt: skip
    wide = x16.astype(np.float32)
    same(outs["o0"], (wide * np.float32(np.float16(0.1))).astype(np.float16), "scalar:literal")
    same(outs["o1"], wide * np.float32(0.1), "scalar:const")
    same(outs["o2"], (xi * 0.5).astype(np.float16), "scalar:const")
    same(outs["o3"], wide * np.float32(0.1), "scalar:run time")
    same(outs["o4"], xi.astype(np.int64) * 3, "scalar:const")


def test_on_chip_tensors_are_places():  # O-201, O-219, O-214, B-38: seen through every name
    x, y = numbers(), numbers(seed=204)
    outs = {f"o{i}": np.zeros((16, 64), np.float32) for i in range(4)}
    run(
        """
        buf = pl.mul(x, 2.0)
        b2 = buf
        pl.assemble(buf, y[0:4, :], [8, 0])
        buf[0:2, 0:8] = y[0:2, 0:8]
        pl.write(buf, [15, 63], 3.5)
        o0[:, :] = buf
        o1[:, :] = b2
        part = buf[4:8, :]
        part[0:1, :] = y[0:1, :]
        o2[:, :] = b2
        o3[:, :] = pl.add(pl.slice(buf, [16, 64], [0, 0]), 0.0)
        """,
        x=x, y=y, **outs,
    )  # fmt: skip
    want = 2 * x
    want[8:12], want[:2, :8], want[15, 63] = y[:4], y[:2, :8], 3.5
    same(outs["o0"], want, "place:")
    same(outs["o1"], want, "place:")
    want[4] = y[0]
    same(outs["o2"], want, "place:")
    same(outs["o3"], want, "place:")


def test_an_accumulator_is_a_place():  # O-219, O-215, B-38
    a, b = numbers((16, 32)), numbers((32, 32), 205)
    o = np.zeros((16, 64), np.float32)
    run(
        """
        buf = pl.full([16, 64], pl.FP32, 1.0)
        other = buf
        pl.matmul_acc(buf[:, 32:64], a, b)
        o[:, :] = other
        """,
        a=a, b=b, o=o,
    )  # fmt: skip
    np.testing.assert_array_equal(o[:, :32], 1)
    np.testing.assert_allclose(o[:, 32:], 1 + a @ b, rtol=1e-4, atol=1e-4)


def test_layouts_never_change_elements():  # O-202, O-206: operands elsewhere are moved
    x, y = numbers((16, 32)), numbers((32, 16), 206)
    outs = {
        "o0": np.zeros((16, 32), np.float32),
        "o1": np.zeros((16, 16), np.float32),
        "o2": np.zeros((16, 16), np.float32),
        "o3": np.zeros((2, 2), np.float32),
    }
    run(
        """
        m = pl.load(x, [0, 0], [16, 32], target_memory=pl.Mem.Mat)
        o0 = pl.store(pl.add(m, pl.load(x, [0, 0], [16, 32])), [0, 0], o0)
        p = pl.matmul(m, pl.load(y, [0, 0], [32, 16]))
        o1 = pl.store(pl.exp(pl.mul(p, 0.01)), [0, 0], o1)
        c = pl.tile.create([16, 16], pl.FP32, target_memory=pl.Mem.Mat, flat_layout=True)
        q = pl.assemble(pl.load(x, [0, 0], [16, 16]), pl.load(y, [0, 0], [16, 16]), [0, 0])
        o2 = pl.store(pl.reshape(pl.reshape(q, [256, 1]), [16, 16]), [0, 0], o2)
        v = pl.read(pl.transpose(pl.load(x, [0, 0], [16, 32]), 0, 1), [5, 3])
        pl.write(o3, [0, 0], v)
        pl.write(o3, [1, 1], v)
        """,
        x=x, y=y, **outs,
    )  # fmt: skip
    same(outs["o0"], x + x, "layout:")
    np.testing.assert_allclose(outs["o1"], np.exp(0.01 * (x @ y)), rtol=1e-4)
    same(outs["o2"], np.ascontiguousarray(y[:16]), "layout:")
    assert outs["o3"][0, 0] == x[3, 5] == outs["o3"][1, 1]


LARGE = """
@pl.jit
def f(x: pl.Tensor[[2048, 2048], pl.FP32], o: pl.Out[pl.Tensor[[2048, 2048], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        BODY
    return o
"""


def test_capacity():  # O-207, B-42
    x = numbers((2048, 2048))
    o = np.zeros_like(x)
    jit(LARGE.replace("BODY", "o[:, :] = pl.add(pl.mul(x, 2.0), 1.0)"), x, o)
    same(o, x * 2 + 1, "capacity:")
    body = "c = pl.mul(x, 2.0)\n        o[:, :] = pl.row_expand_sub(pl.col_expand_mul(c, pl.col_max(c)), pl.row_max(c))"
    with pytest.raises(ValueError, match="exceeds platform limit"):
        jit(LARGE.replace("BODY", body), x, o)
    for platform, kib in (("a2a3sim", 184), ("a5sim", 240)):
        rows = kib * 4 + 1  # one row of 64 FP32 too many
        body = f"o = pl.store(pl.load(x, [0, 0], [{rows}, 64]), [0, 0], o)"
        with pytest.raises(ValueError, match=rf"Vec buffer usage .*exceeds platform limit \({kib * 1024} bytes\)"):
            jit(LARGE.replace("BODY", body), x, o, platform=platform)
        jit(LARGE.replace("BODY", body.replace(str(rows), str(rows - 1))), x, o, platform=platform)


def test_mixed_stores():  # O-217, B-31
    x = numbers()
    body = "o = pl.store(pl.load(x, [0, 0], [16, 64]), [0, 0], o)\npl.write(o, [0, 0], 1.0)"
    with pytest.raises(ValueError, match="mixes") as caught:
        run(body, x=x, o=np.zeros_like(x))
    assert "scalar stores" in str(caught.value)
    text = """
@pl.jit
def f(x: pl.Tensor[[16, 64], pl.FP32], o: pl.Out[pl.Tensor[[16, 64], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        o = pl.store(pl.load(x, [0, 0], [16, 64]), [0, 0], o)
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.write(o, [0, 0], 1.0)
    return o
"""
    o = np.zeros_like(x)
    jit(text, x, o)  # two kernels in sequence may differ
    want = x.copy()
    want[0, 0] = 1
    same(o, want, "mixed:")


KINDS = [  # O-220: producer, then a consumer that takes only the other kind
    ("a = pl.arange(0, [1, 64])\nb = pl.tile.adds(a, 1)", "pl.tile.adds"),
    ("a = pl.full([16, 64], pl.FP32, 0.0)\nb = pl.relu(a)", "relu"),
    ("a = pl.tile.full([16, 64], pl.FP32, 0.0)\nb = pl.tensor.exp(a)", "exp"),
    ("a = pl.create_tile([16, 64], dtype=pl.FP32)\nb = pl.tensor.exp(a)", "exp"),
    ("a = pl.add(x, 1.0)\nb = pl.load(a, [0, 0], [8, 64])", "load"),
    ("a = pl.tri(0, [16, 64], dtype=pl.FP32)\nb = pl.add(x, a)", "cannot mix"),
    ("a = pl.slice(pl.load(x, [0, 0], [16, 64]), [8, 64], [0, 0])\nb = pl.tensor.exp(a)", "exp"),
    ("a = pl.cmp(x, 0.0)\nb = pl.tile.exp(a)", "exp"),
    ("a = pl.create_l1([16, 64], pl.FP32)\nb = pl.tile.exp(a)", "exp"),
]


@pytest.mark.parametrize("body,word", KINDS)
def test_kinds_of_results(body, word):  # O-220, O-221, O-503
    x = numbers()
    with pytest.raises(TypeError, match=word.replace(".", r"\.")):
        run(body + "\no[:, :] = x", x=x, o=np.zeros_like(x))


def test_level_one_tensors_feed_products():  # O-503
    x, m = numbers(), numbers((64, 16), 207)
    o = np.zeros((16, 16), np.float32)
    run(
        """
        a = pl.create_l1([16, 64], pl.FP32)
        a = pl.gather_row(a, x, [0, 0], [0, 0], [16, 64])
        o[:, :] = pl.matmul(a, m)
        """,
        x=x, m=m, o=o,
    )  # fmt: skip
    np.testing.assert_allclose(o, x @ m, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("op", ["get_block_idx", "get_block_num", "get_subblock_idx"])
def test_block_identity(op):  # O-2201: kernels only; the same in every spelling
    text = f"""
@pl.jit
def f(o: pl.Out[pl.Tensor[[6, 8], pl.INT32]]):
    for i in pl.spmd(6):
        a = pl.{op}() * 100 + pl.tensor.{op}() * 10 + pl.tile.{op}()
        t = pl.add(pl.tile.full([1, 8], pl.INT32, 0), pl.cast(a, pl.INT32))
        o = pl.store(t, [i, 0], o)
    return o
"""
    o = np.full((6, 8), 9, np.int32)
    jit(text, o)
    one = {"get_block_idx": np.arange(6), "get_block_num": np.full(6, 6), "get_subblock_idx": np.zeros(6, int)}[op]
    np.testing.assert_array_equal(o, np.repeat(one[:, None] * 111, 8, 1))
    bad = f"""
@pl.jit
def f(x: pl.Tensor[[16, 64], pl.FP32], o: pl.Out[pl.Tensor[[16, 64], pl.FP32]]):
    n = pl.{op}()
    with pl.at(level=pl.Level.CORE_GROUP):
        o[:, :] = x
    return o
"""
    with pytest.raises(Exception, match=op):
        jit(bad, numbers(), numbers())


@pytest.mark.parametrize(
    "op", ["add(x, x)", "exp(x)", "full([16, 64], pl.FP32, 0.0)", "matmul(x, x, b_trans=True)", "row_sum(x)"]
)
def test_tensor_operations_in_orchestration(op):  # O-204
    name = op.split("(")[0]
    text = f"""
@pl.jit
def f(x: pl.Tensor[[16, 64], pl.FP32], o: pl.Out[pl.Tensor[[16, 64], pl.FP32]]):
    a = pl.{op}
    with pl.at(level=pl.Level.CORE_GROUP):
        o[:, :] = x
    return o
"""
    with pytest.raises(Exception) as caught:
        jit(text, numbers(), numbers())
    message = f"Misplaced tensor op 'tensor.{name}' in Orchestration function (should be inside InCore block)"
    assert message in str(caught.value)


def test_tile_operations_in_orchestration():  # O-204
    text = """
@pl.jit
def f(x: pl.Tensor[[16, 64], pl.FP32], o: pl.Out[pl.Tensor[[16, 64], pl.FP32]]):
    a = pl.load(x, [0, 0], [16, 64])
    with pl.at(level=pl.Level.CORE_GROUP):
        o[:, :] = x
    return o
"""
    with pytest.raises(Exception, match="Misplaced builtin op"):
        jit(text, numbers(), numbers())


def test_arrays_are_carried_out_of_branches_and_loops():  # O-2404, O-2401, O-2402
    text = """
@pl.jit
def f(n: pl.Tensor[[4], pl.INT32], o: pl.Out[pl.Tensor[[1, 8], pl.INT32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        a = pl.array.create(8, pl.INT32)
        k = pl.read(n, [0])
        old = a[2]
        for i in pl.range(4):
            if pl.read(n, [i]) > 2:
                a[i] = pl.read(n, [i])
            else:
                a = pl.array.update_element(a, i + 4, -1)
        a[2] = a[2] + 100
        pl.write(o, [0, 7], old)
        for i in pl.range(7):
            pl.write(o, [0, i], pl.array.get_element(a, i))
    return o
"""
    n, o = np.array([5, 1, 9, 2], np.int32), np.full((1, 8), 77, np.int32)
    jit(text, n, o)
    np.testing.assert_array_equal(o[0], [5, 0, 109, 0, 0, -1, 0, 0])


# ---------------------------------------------------------------- diagnostics of a run


def test_simulator_errors_say_where():  # O-402, O-404, O-601: rank or core, kernel, line, operation, cell, bounds
    x = numbers()
    for checks in ("default", "off"):
        text = """
@pl.jit
def f(x: pl.Tensor[[16, 64], pl.FP32], n: pl.Tensor[[1], pl.INT32], o: pl.Out[pl.Tensor[[16, 64], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="peek"):
        v = pl.read(x, [pl.read(n, [0]), 3])
        o[:, :] = pl.add(x, v)
    return o
"""
        with pytest.raises(Exception) as caught:
            jit(text, x, np.array([16], np.int32), np.zeros_like(x), checks=checks)
        message = str(caught.value)
        for word in ("read", "16", "case_", ":6", "peek", "'x'"):
            assert word in message, (word, message)


def test_warnings_are_counted_and_strict_makes_errors():  # O-403, O-405, O-306, O-1905
    x, y = np.full((4, 16), 7, np.int32) + np.arange(16, dtype=np.int32), np.zeros((4, 16), np.int32)
    o = np.zeros_like(x)
    body = "o = pl.store(pl.div(pl.load(x, [0, 0], [4, 16]), pl.load(y, [0, 0], [4, 16])), [0, 0], o)"
    run(body, x=x, y=y, o=o)
    found = [d for d in last_report().diagnostics if "div" in str(d)]
    assert len(found) == 1, last_report().diagnostics
    text = """
@pl.jit
def f(x: pl.Tensor[[4, 16], pl.INT32], y: pl.Tensor[[4, 16], pl.INT32], o: pl.Out[pl.Tensor[[4, 16], pl.INT32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        o = pl.store(pl.div(pl.load(x, [0, 0], [4, 16]), pl.load(y, [0, 0], [4, 16])), [0, 0], o)
    return o
"""
    with pytest.raises(Exception, match="div"):
        jit(text, x, y, o, checks="strict")


def test_storage_reuse_is_never_observable():  # O-216, B-26, B-39
    x = numbers()
    outs = {f"o{i}": np.zeros_like(x) for i in range(4)}
    run(
        """
        t = pl.load(x, [0, 0], [16, 64])
        e = pl.exp(t)
        o0 = pl.store(pl.add(t, t), [0, 0], o0)
        o1 = pl.store(pl.mul(e, e), [0, 0], o1)
        b = t
        b = pl.write(b, [0, 0], 9.0)
        o2 = pl.store(pl.sub(e, e), [0, 0], o2)
        c = pl.concat(t[:, 0:32], t[:, 32:64])
        o3 = pl.store(c, [0, 0], o3)
        """,
        x=x, **outs,
    )  # fmt: skip
    same(outs["o0"], x + x, "reuse:")
    same(outs["o2"], np.zeros_like(x), "reuse:")
    np.testing.assert_array_equal(outs["o1"], outs["o1"])
    assert (outs["o3"][:, 1:] == x[:, 1:]).all()


def test_addresses_read_the_bytes_of_their_statement():  # O-205, B-37
    x = numbers()
    outs = {"io": x.copy(), "o1": np.zeros((4, 64), np.float32), "o2": np.zeros((4, 64), np.float32)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run(
            """
            part = pl.slice(io, [4, 64], [2, 0])
            io = pl.store(pl.tile.full([4, 64], pl.FP32, 5.0), [2, 0], io)
            o1[:, :] = pl.add(part, 0.0)
            o2 = pl.store(pl.load(part, [0, 0], [4, 64]), [0, 0], o2)
            """,
            **outs,
        )  # fmt: skip
    same(outs["o1"], x[2:6] + np.float32(0), "address:value", signs=False)
    same(outs["o2"], np.full((4, 64), 5, np.float32), "address:place")


def test_extents_of_axes():  # O-603: negative axes count from the end, constants fold, run-time extents are read
    text = """
R = pl.dynamic("R")

@pl.jit
def f(x: pl.Tensor[[R, 24, 64], pl.FP32], o: pl.Out[pl.Tensor[[1, 8], pl.INT64]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        for k in pl.unroll(3):
            pl.write(o, [0, k], pl.cast(pl.dim(x, k), pl.INT64))
            pl.write(o, [0, k + 3], pl.cast(pl.tensor.dim(tensor=x, axis=k - 3), pl.INT64))
        t = pl.create_tile([pl.dim(x, 1), pl.dim(x, -1)], dtype=pl.FP32)
        pl.write(o, [0, 6], pl.const(24, pl.INT64))
    return o
"""
    for rows in (3, 7):
        o = np.zeros((1, 8), np.int64)
        jit(text, numbers((rows, 24, 64)), o)
        np.testing.assert_array_equal(o[0, :6], [rows, 24, 64, rows, 24, 64])


def test_loads_of_fewer_axes_address_the_trailing_ones():  # O-701
    x = numbers((3, 16, 64))
    o0, o1 = np.zeros((8, 32), np.float32), np.full((1, 64), 7, np.float32)
    run(
        """
        o0 = pl.store(pl.load(x, [4, 16], [8, 32]), [0, 0], o0)
        o1 = pl.store(pl.load(x, [8], [32], valid_shape=[n]), [0, 0], o1)
        """,
        "a2a3sim", {"n": ("INT32", 5)}, x=x, o0=o0, o1=o1,
    )  # fmt: skip
    same(o0, np.ascontiguousarray(x[0, 4:12, 16:48]), "load:trailing")
    want = np.full((1, 64), 7, np.float32)
    want[0, :5] = x[0, 0, 8:13]
    same(o1, want, "load:trailing")


@pytest.mark.parametrize("keyword", ["a_trans", "b_trans", "c_matrix_nz"])
def test_tile_products_take_no_transposition(keyword):  # O-1803, O-111
    with pytest.raises(TypeError, match=keyword) as caught:
        run(
            f"o[0:16, 0:16] = x[0:16, 0:16]\nt = pl.load(x, [0, 0], [16, 16])\nu = pl.matmul(t, t, {keyword}=True)",
            x=numbers(), o=numbers(),
        )  # fmt: skip
    cause = caught.value.__cause__ or caught.value
    assert "transpose_view" in str(caught.value) + str(getattr(caught.value, "hint", "")) + str(cause)
    o = np.zeros((16, 16), np.float32)
    x = numbers((16, 16))
    run(f"t = pl.load(x, [0, 0], [16, 16])\no = pl.store(pl.matmul(t, t, {keyword}=False), [0, 0], o)", x=x, o=o)
    np.testing.assert_allclose(o, x @ x, rtol=1e-4, atol=1e-4)


def test_floor_division_of_run_time_numbers():  # B-33, O-606
    a, b = np.array([-7, 7, -8, 9, -1], np.int32), np.array([3, -3, 4, -5, 7], np.int32)
    text = """
@pl.jit
def f(a: pl.Tensor[[5], pl.INT32], b: pl.Tensor[[5], pl.INT32], q: pl.Out[pl.Tensor[[5], pl.INT32]],
      r: pl.Out[pl.Tensor[[5], pl.INT32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        for i in pl.range(5):
            pl.write(q, [i], pl.read(a, [i]) // pl.read(b, [i]))
            pl.write(r, [i], pl.read(a, [i]) % pl.read(b, [i]))
    return q, r
"""
    q, r = np.zeros(5, np.int32), np.zeros(5, np.int32)
    jit(text, a, b, q, r)
    np.testing.assert_array_equal(q, a // b)
    np.testing.assert_array_equal(r, a % b)


def test_a_carried_accumulator_read_under_its_old_name():  # B-40, 01 L-97: the final sum, and a warning
    a, b = numbers((16, 64)), numbers((64, 16), 208)
    text = """
@pl.jit
def f(a: pl.Tensor[[16, 64], pl.FP32], b: pl.Tensor[[64, 16], pl.FP32], o: pl.Out[pl.Tensor[[16, 16], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        acc0 = pl.matmul(pl.load(a, [0, 0], [16, 16]), pl.load(b, [0, 0], [16, 16]))
        for k, (acc,) in pl.range(16, 64, 16, init_values=(acc0,)):
            nxt = pl.matmul_acc(acc, pl.load(a, [0, k], [16, 16]), pl.load(b, [k, 0], [16, 16]))
            result = pl.yield_(nxt)
        o = pl.store(acc0, [0, 0], o)
    return o
"""
    o = np.zeros((16, 16), np.float32)
    with pytest.warns(UserWarning, match="acc0"):
        jit(text, a, b, o)
    np.testing.assert_allclose(o, a @ b, rtol=1e-4, atol=1e-4)
