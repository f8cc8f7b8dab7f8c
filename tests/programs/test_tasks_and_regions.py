# SPDX-License-Identifier: Apache-2.0
"""Calls, regions, tasks and what orders them, one program per rule."""

import warnings

import numpy as np
import pypto.language as pl
import pytest
from pypto import ir
from pypto.runtime import RunConfig, SimOptions, last_report

SIM = RunConfig(platform="a2a3sim")
PLATFORMS = ["a2a3sim", "a5sim"]
RNG = np.random.default_rng(31)
T = pl.Tensor[[16, 64], pl.FP32]


def f32(*shape):
    return RNG.standard_normal(shape, dtype=np.float32)


def run(kernel, *inputs, shape=(16, 64), fill=0.0, config=SIM):
    out = np.full(shape, fill, np.float32)
    kernel(*inputs, out, config=config)
    return out


# ---------------------------------------------------------------- callees


@pl.jit.incore
def scaled_rows(s: pl.Scalar[pl.FP32], x: pl.Tensor, row: pl.Scalar[pl.INDEX], o: pl.Out[pl.Tensor]):
    return pl.store(pl.mul(pl.load(x, [row, 0], [8, 64]), s), [row, 0], o)


another_name = scaled_rows
try:
    from math import missing as scaled_rows_again
except ImportError:
    scaled_rows_again = scaled_rows


@pl.jit
def calls_by_alias(f: pl.Scalar[pl.FP32], x: T, o: pl.Out[T]):
    o = another_name(f, x, 0, o)
    o = scaled_rows_again(3.0, x, o=o, row=8)
    return o


def test_scalars_may_stand_before_tensors_and_callees_have_aliases():  # L-49, L-72
    x = f32(16, 64)
    want = np.concatenate([x[:8] * np.float32(0.5), x[8:] * 3])
    np.testing.assert_array_equal(run(calls_by_alias, 0.5, x), want)


def test_result_types_come_from_the_return():  # L-75
    @pl.jit.incore
    def two(x: pl.Tensor, a: pl.Out[pl.Tensor], b: pl.Out[pl.Tensor]):
        t = pl.load(x, [0, 0], [16, 64])
        a = pl.store(pl.add(t, 1.0), [0, 0], a)
        b = pl.store(pl.row_max(t, pl.create_tile([16, 64], pl.FP32)), [0, 0], b)
        return b, a

    @pl.jit
    def k(x: T, o: pl.Out[T]):
        a = pl.create_tensor([16, 64], dtype=pl.FP32)
        b = pl.create_tensor([16, 1], dtype=pl.FP32)
        top, plus = two(x, a, b)
        with pl.at(level=pl.Level.CORE_GROUP):
            o[:] = pl.row_expand_sub(plus, top)
        return o

    x = f32(16, 64)
    np.testing.assert_array_equal(run(k, x), (x + 1) - x.max(1, keepdims=True))


@pl.program
class Planes:
    """Every kind of callee of an orchestration."""

    @pl.function(type=pl.FunctionType.InCore)
    def incore(self, x: T, o: pl.Out[T]) -> T:
        return pl.store(pl.add(pl.load(x, [0, 0], [16, 64]), 1.0), [0, 0], o)

    @pl.function(type=pl.FunctionType.AIV)
    def aiv(self, x: T, o: pl.Out[T]) -> T:
        return pl.store(pl.mul(pl.load(x, [0, 0], [16, 64]), 2.0), [0, 0], o)

    @pl.function(type=pl.FunctionType.AIC)
    def aic(self, x: T, w: pl.Tensor[[64, 64], pl.FP32], o: pl.Out[T]) -> T:
        a = pl.load(x, [0, 0], [16, 64], target_memory=pl.Mem.Mat)
        b = pl.load(w, [0, 0], [64, 64], target_memory=pl.Mem.Mat)
        return pl.store(pl.matmul(a, b), [0, 0], o)

    @pl.function(type=pl.FunctionType.Graph)
    def graph(self, x: T, o: pl.Out[T]) -> T:
        o = self.incore(x, o)
        return o

    @pl.function
    def opaque(self, x: T, o: pl.Out[T]) -> T:
        with pl.at(level=pl.Level.CORE_GROUP):
            o[:] = pl.sub(x, 3.0)
        return o

    @pl.function(type=pl.FunctionType.Inline)
    def inlined(self, x: T, o: T) -> T:
        o = self.aiv(x, o)
        return o

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: T, w: pl.Tensor[[64, 64], pl.FP32], o: pl.Out[T]) -> T:
        a = pl.create_tensor([16, 64], dtype=pl.FP32)
        b = pl.create_tensor([16, 64], dtype=pl.FP32)
        a = self.graph(x, a)
        b = self.opaque(a, b)
        a = self.inlined(b, a)
        o = self.aic(a, w, o)
        return o


@pytest.mark.parametrize("platform", PLATFORMS)
def test_what_an_orchestration_may_call(platform):  # L-46, L-44
    x, w, o = f32(16, 64), f32(64, 64), np.zeros((16, 64), np.float32)
    ir.compile(Planes, platform=platform)(x, w, o)
    np.testing.assert_allclose(o, (x + 1 - 3) * 2 @ w, rtol=1e-4, atol=1e-3)


def test_omitted_outputs_of_a_submit():  # L-55, L-130
    @pl.program
    class P:
        @pl.function(type=pl.FunctionType.InCore)
        def two(self, x: T, a: pl.Out[T], b: pl.Out[T]) -> tuple[T, T]:
            t = pl.load(x, [0, 0], [16, 64])
            a = pl.store(pl.add(t, 1.0), [0, 0], a)
            b = pl.store(pl.mul(t, 2.0), [0, 0], b)
            return a, b

        @pl.function(type=pl.FunctionType.InCore)
        def rows(self, x: T, o: pl.Out[T]) -> T:
            i = pl.tile.get_block_idx()
            return pl.store(pl.neg(pl.load(x, [i * 4, 0], [4, 64])), [i * 4, 0], o)

        @pl.function(type=pl.FunctionType.InCore)
        def join(self, a: T, b: T, o: pl.Out[T]) -> T:
            return pl.store(pl.add(pl.load(a, [0, 0], [16, 64]), pl.load(b, [0, 0], [16, 64])), [0, 0], o)

        @pl.function(type=pl.FunctionType.Orchestration)
        def main(self, x: T, o: pl.Out[T]) -> T:
            (a, b), t = pl.submit(self.two, x)
            flat = pl.spmd_submit(self.rows, b, core_num=4, deps=[t])
            o, _ = pl.submit(self.join, a, flat[0], o, deps=[flat[1]])
            return o

    x, o = f32(16, 64), np.zeros((16, 64), np.float32)
    ir.compile(P, platform="a2a3sim")(x, o)
    np.testing.assert_array_equal(o, (x + 1) + -(x * 2))


# ---------------------------------------------------------------- loops and regions


def test_every_iterator():  # L-93, L-94, L-104
    @pl.jit
    def k(x: T, o: pl.Out[T]):
        for r in pl.parallel(0, 16, 8, attrs={"note": "rows", "n": 2}):
            with pl.at(level=pl.Level.CORE_GROUP):
                for c in pl.range(0, 64, 32, init_values=None, attrs={"k": [1, 2]}):
                    for u in pl.unroll(0, 32, 16, attrs={"u": True}):
                        for q in pl.pipeline(8, 0, -4, stage=2, attrs=None):
                            y = r + q - 4
                            t = pl.load(x, [y, c + u], [4, 16])
                            o = pl.store(pl.add(t, float(u)), [y, c + u], o)
        return o

    x = f32(16, 64)
    want = x + np.where(np.arange(64) % 32 < 16, np.float32(0), np.float32(16))
    np.testing.assert_array_equal(run(k, x), want)


@pytest.mark.parametrize("stages", [1, 2, 3, 7])
def test_a_pipeline_gives_what_a_range_gives(stages):  # L-100, L-165
    @pl.jit
    def k(x: pl.Tensor[[64, 64], pl.FP32], o: pl.Out[pl.Tensor[[64, 64], pl.FP32]]):
        with pl.at(level=pl.Level.CORE_GROUP):
            last = pl.tile.full([8, 64], pl.FP32, 0.0)
            for i in pl.pipeline(0, 64, 8, stage=stages):
                t = pl.load(x, [i, 0], [8, 64])
                last = pl.add(pl.mul(last, 0.5), t)
                o = pl.store(last, [i, 0], o)
        return o

    x = f32(64, 64)
    want, last = np.zeros_like(x), np.zeros((8, 64), np.float32)
    for i in range(0, 64, 8):
        last = last * np.float32(0.5) + x[i : i + 8]
        want[i : i + 8] = last
    np.testing.assert_array_equal(run(k, x, shape=(64, 64)), want)


def test_every_argument_of_a_region():  # L-109, L-138, L-139, L-165
    @pl.jit
    def k(x: T, o: pl.Out[T]):
        tmp = pl.create_tensor([16, 64], dtype=pl.FP32)
        with pl.at(
            pl.Level.CORE_GROUP,
            name_hint="first",
            deps=[],
            dumps=[x],
            allow_early_resolve=True,
            windowize=False,
            optimizations=[pl.split(pl.SplitMode.NONE), pl.cross_core_slot(slot_num=3)],
        ) as one:
            tmp[:] = pl.exp(x)
        with pl.at(level=pl.Level.CORE_GROUP, deps=[one, None], no_dep_args=[tmp], optimizations=None):
            o[:] = pl.add(tmp, x)
        return o

    x = f32(16, 64)
    np.testing.assert_allclose(run(k, x), np.exp(x) + x, rtol=1e-5, atol=1e-6)


def test_hierarchy_regions_run_in_order_with_their_surroundings():  # L-109
    @pl.jit
    def k(x: T, o: pl.Out[T]):
        with pl.at(pl.Level.CHIP, pl.Role.Orchestrator, name_hint="chip"):
            tmp = pl.create_tensor([16, 64], dtype=pl.FP32)
            with pl.at(pl.Level.CORE_GROUP):
                tmp[:] = pl.mul(x, 2.0)
        with pl.at(pl.Level.CORE_GROUP):
            o[:] = pl.add(tmp, 1.0)
        return o

    x = f32(16, 64)
    np.testing.assert_array_equal(run(k, x), x * 2 + 1)


@pl.jit.incore
def block_rows(x: pl.Tensor, o: pl.Out[pl.Tensor]):
    i = pl.tile.get_block_idx()
    return pl.store(pl.mul(pl.load(x, [i * 4, 0], [4, 64]), 2.0), [i * 4, 0], o)


def test_every_form_of_spmd():  # L-116, L-117
    @pl.jit
    def k(x: T, o: pl.Out[T]):
        a = pl.create_tensor([16, 64], dtype=pl.FP32)
        b = pl.create_tensor([16, 64], dtype=pl.FP32)
        c = pl.create_tensor([16, 64], dtype=pl.FP32)
        n = x.shape[0] // 4
        for i in pl.spmd(core_num=n, name_hint="loop", sync_start=True, allow_early_resolve=False):
            a[i * 4 : i * 4 + 4, :] = pl.add(x[i * 4 : i * 4 + 4, :], pl.cast(pl.cast(i, pl.INT32), pl.FP32))
        with pl.spmd(4, name_hint="call") as one:
            b = block_rows(a, b)
        with pl.spmd(n, deps=[one], optimizations=[]) as two:
            with pl.at(level=pl.Level.CORE_GROUP, name_hint="inner"):
                i = pl.get_block_idx()
                c = pl.store(pl.neg(pl.load(b, [i * 4, 0], [4, 64])), [i * 4, 0], c)
        with pl.spmd(2, deps=[two]):
            i = pl.tensor.get_block_idx()
            half = 16 // 2
            o[i * half : i * half + half, :] = pl.add(c[i * half : i * half + half, :], 1.0)
        return o

    with pytest.raises(Exception, match="does not accept 'deps=' here"):
        run(k, f32(16, 64))

    @pl.jit
    def fixed(x: T, o: pl.Out[T]):
        a = pl.create_tensor([16, 64], dtype=pl.FP32)
        b = pl.create_tensor([16, 64], dtype=pl.FP32)
        c = pl.create_tensor([16, 64], dtype=pl.FP32)
        n = x.shape[0] // 4
        for i in pl.spmd(core_num=n, name_hint="loop", sync_start=True, allow_early_resolve=False):
            a[i * 4 : i * 4 + 4, :] = pl.add(x[i * 4 : i * 4 + 4, :], pl.cast(pl.cast(i, pl.INT32), pl.FP32))
        with pl.spmd(4, name_hint="call") as one:
            b = block_rows(a, b)
        with pl.spmd(n, deps=[one], optimizations=[]) as two:
            with pl.at(level=pl.Level.CORE_GROUP, name_hint="inner"):
                i = pl.get_block_idx()
                c = pl.store(pl.neg(pl.load(b, [i * 4, 0], [4, 64])), [i * 4, 0], c)
        with pl.spmd(2, deps=[two]) as _:
            i = pl.tensor.get_block_idx()
            half = 16 // 2
            o[i * half : i * half + half, :] = pl.add(c[i * half : i * half + half, :], 1.0)
        return o

    x = f32(16, 64)
    index = np.repeat(np.arange(4, dtype=np.float32), 4)[:, None]
    np.testing.assert_array_equal(run(fixed, x), -((x + index) * 2) + 1)


# ---------------------------------------------------------------- memory, valid shapes


@pytest.mark.parametrize("platform", PLATFORMS)
def test_operands_of_products_move_by_themselves(platform):  # L-145, L-144
    @pl.jit
    def k(a: pl.Tensor[[16, 32], pl.FP32], b: pl.Tensor[[32, 64], pl.FP32], o: pl.Out[T]):
        with pl.at(level=pl.Level.CORE_GROUP):
            x = pl.move(pl.load(a, [0, 0], [16, 32], target_memory=pl.Mem.Mat), pl.Mem.Left)
            y = pl.load(b, [0, 0], [32, 64])
            p = pl.matmul(x, y)
            o = pl.store(p, [0, 0], o)
        return o

    a, b = f32(16, 32), f32(32, 64)
    got = run(k, a, b, config=RunConfig(platform=platform))
    np.testing.assert_allclose(got, a @ b, rtol=1e-4, atol=1e-4)


def test_a_kernel_reads_a_parameter_before_and_after_writing_it():  # L-151, L-167
    @pl.jit
    def k(x: T, o: pl.InOut[T]):
        with pl.at(level=pl.Level.CORE_GROUP):
            before = pl.load(o, [0, 0], [8, 64])
            first = pl.read(o, [0, 0])
            o = pl.store(pl.load(x, [0, 0], [8, 64]), [0, 0], o)
            after = pl.load(o, [0, 0], [8, 64])
            second = pl.read(o, [0, 0])
            both = pl.add(before, after)
            both = pl.add(both, first)
            o = pl.store(pl.add(both, second), [8, 0], o)
        return o

    x, o = f32(16, 64), f32(16, 64)
    want = np.concatenate([x[:8], ((o[:8] + x[:8]) + o[0, 0]) + x[0, 0]])
    k(x, o, config=SIM)
    np.testing.assert_array_equal(o, want)


def test_valid_extents_travel_with_the_value():  # L-152, L-153
    @pl.jit.incore
    def keep(x: pl.Tensor, o: pl.Out[pl.Tensor]):
        t = pl.slice(x, [16, 64], [0, 0])
        o[:, :] = pl.add(t, 1.0)
        return o

    @pl.jit
    def k(x: T, n: pl.Tensor[[2], pl.INT32], o: pl.InOut[T], p: pl.InOut[T], q: pl.InOut[T]):
        rows, cols = pl.read(n, [0]), pl.read(n, [1])
        with pl.at(level=pl.Level.CORE_GROUP):
            t = pl.load(x, [0, 0], [16, 64], valid_shape=[rows, cols])
            if rows > 4:
                t = pl.tile.set_validshape(t, 4, cols)
            u = pl.exp(pl.add(t, 1.0))
            o = pl.store(u, [0, 0], o)
            whole = pl.load(x, [0, 0], [16, 64])
            p = pl.store(pl.maximum(t, whole), [0, 0], p)
        narrowed = pl.slice(x, [16, 64], [0, 0], valid_shape=[rows, cols])
        q = keep(narrowed, q)
        return o, p, q

    x = f32(16, 64)
    for rows, cols in ((3, 10), (9, 64)):
        o, p, q = (np.full((16, 64), 7, np.float32) for _ in range(3))
        k(x, np.array([rows, cols], np.int32), o, p, q, config=SIM)
        box = np.zeros((16, 64), bool)
        box[: min(rows, 4), :cols] = True
        np.testing.assert_allclose(o, np.where(box, np.exp(x + 1), 7), rtol=1e-5)
        np.testing.assert_array_equal(p, np.where(box, x, 7))
        box[:rows, :cols] = True
        np.testing.assert_array_equal(q, np.where(box, x + 1, 7))


# ---------------------------------------------------------------- tasks


def test_the_control_plane_submits_in_order_and_runs_once():  # L-157, L-158
    @pl.jit
    def k(x: T, o: pl.Out[T]):
        n = 2
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="region"):
            o[:] = pl.mul(x, float(2))
        n = n + 3
        o = scaled_rows(2.0, o, 0, o)
        with pl.spmd(4, name_hint="blocks"):
            o = block_rows(o, o)
        pl.system.task_dummy(deps=[])
        for i in pl.range(n):
            with pl.at(level=pl.Level.CORE_GROUP, name_hint="many"):
                o[0:1, :] = pl.add(o[0:1, :], 1.0)
        return o

    x = f32(16, 64)
    got = run(k, x, config=RunConfig(platform="a2a3sim", sim=SimOptions(collect=True)))
    want = x * 2
    want[:8] *= 2
    want *= 2
    for _ in range(5):
        want[:1] += 1
    np.testing.assert_array_equal(got, want)
    kernels = last_report().ranks[0].kernels
    assert sorted(kernels.values()) == [1, 1, 1, 5]


def test_tasks_fill_one_output_in_parts():  # L-160, L-163
    @pl.jit
    def k(x: T, o: pl.Out[T]):
        for i in pl.parallel(0, 12, 4):
            with pl.at(level=pl.Level.CORE_GROUP):
                o[i : i + 4, 0:32] = pl.add(x[i : i + 4, 0:32], 1.0)
        for i in pl.range(2):
            o = scaled_rows(0.5, o, i * 8, o)
        return o

    x = f32(16, 64)
    kept = x.copy()
    got = run(k, x, fill=8.0)
    want = np.full((16, 64), 8, np.float32)
    want[:12, :32] = x[:12, :32] + 1
    np.testing.assert_array_equal(got, want * np.float32(0.5))
    np.testing.assert_array_equal(x, kept)


def test_unordered_tasks_that_disagree_are_reported():  # L-164, L-175
    @pl.jit
    def k(x: T, o: pl.Out[T], p: pl.Out[T]):
        with pl.manual_scope():
            with pl.at(level=pl.Level.CORE_GROUP, name_hint="left"):
                o[:] = pl.add(x, 1.0)
            with pl.at(level=pl.Level.CORE_GROUP, name_hint="right"):
                p[:] = pl.mul(o, 2.0)
        return o, p

    x = f32(16, 64)
    with pytest.raises(RuntimeError, match="race") as caught:
        k(x, np.zeros_like(x), np.zeros_like(x), config=SIM)
    assert all(word in str(caught.value) for word in ("left", "right", "deps="))


def test_hand_over_between_blocks_by_a_barrier():  # L-168, L-169
    def program(meet):
        @pl.jit
        def k(x: T, ws: pl.Tensor[[16], pl.INT32], tmp: pl.Out[T], o: pl.Out[T]):
            with pl.spmd(4, sync_start=True, name_hint="swap") as _:
                i = pl.tile.get_block_idx()
                tmp = pl.store(pl.add(pl.load(x, [i * 4, 0], [4, 64]), 1.0), [i * 4, 0], tmp)
                if meet:
                    pl.system.cacheinvalid()
                    pl.system.fence()
                    pl.system.syncall(core_type="aiv_only", mode="soft", gm_workspace=ws, used_cores=4)
                    pl.system.cacheinvalid()
                o = pl.store(pl.load(tmp, [12 - i * 4, 0], [4, 64]), [i * 4, 0], o)
            return tmp, o

        return k

    x, ws = f32(16, 64), np.zeros(16, np.int32)
    tmp, o = np.zeros_like(x), np.zeros_like(x)
    program(True)(x, ws, tmp, o, config=SIM)
    np.testing.assert_array_equal(o, (x + 1).reshape(4, 4, 64)[::-1].reshape(16, 64))
    with pytest.raises(RuntimeError, match="race"):
        program(False)(x, ws, np.zeros_like(x), o, config=SIM)


@pytest.mark.parametrize("platform", PLATFORMS)
def test_mixed_kernels_run_as_one_program(platform):  # L-170, L-171
    @pl.jit
    def k(a: T, b: pl.Tensor[[64, 64], pl.FP32], n: pl.Tensor[[1], pl.INT32], o: pl.Out[T]):
        with pl.at(level=pl.Level.CORE_GROUP):
            turns = pl.read(n, [0])
            acc = pl.load(a, [0, 0], [16, 64])
            lane = pl.get_subblock_idx()
            for i in pl.range(turns):
                p = pl.matmul(acc, pl.load(b, [0, 0], [64, 64]))
                if i % 2 == 0:
                    acc = pl.mul(p, 0.125)
                else:
                    acc = pl.add(p, pl.cast(pl.cast(lane, pl.INT32), pl.FP32))
            o = pl.store(acc, [0, 0], o, atomic=pl.AtomicType.Add)
        return o

    a, b = f32(16, 64), f32(64, 64) * np.float32(0.1)
    got = run(k, a, b, np.array([3], np.int32), fill=1.0, config=RunConfig(platform=platform))
    want = ((a @ b * 0.125) @ b) @ b * 0.125 + 1
    np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-4)


def test_system_names_take_their_arguments():  # L-141
    @pl.jit
    def k(x: T, o: pl.Out[T]):
        n = pl.system.available_cluster_count()
        m = pl.system.available_aiv_count()
        with pl.at(level=pl.Level.CORE_GROUP):
            pl.system.sync_src(set_pipe=pl.PipeType.MTE2, wait_pipe=pl.PipeType.V, event_id=0)
            pl.system.sync_dst(set_pipe=pl.PipeType.MTE2, wait_pipe=pl.PipeType.V, event_id=0)
            pl.system.bar_v()
            pl.system.bar_m()
            pl.system.bar_all()
            t = pl.load(x, [0, 0], [16, 64])
            pl.system.cacheinvalid(x, [1, 64], [0, 0])
            o = pl.store(pl.add(t, pl.cast(n + m, pl.FP32)), [0, 0], o)
            pl.system.fence()
        return o

    x = f32(16, 64)
    np.testing.assert_array_equal(run(k, x), x + np.float32(72))
    np.testing.assert_array_equal(run(k, x, config=RunConfig(platform="a5sim")), x + np.float32(108))


def test_warnings_come_once_per_place_and_name_it():  # L-183
    @pl.jit
    def k(x: T, o: pl.Out[T]):
        for _ in pl.range(3):
            with pl.at(level=pl.Level.CORE_GROUP):
                t = pl.load(x, [0, 0], [16, 64])
                for i in pl.range(2):
                    u = t[3, :]
                    o = pl.store(u, [i, 0], o)
        return o

    with warnings.catch_warnings(record=True) as record:
        warnings.simplefilter("always")
        run(k, f32(16, 64))
    found = [w for w in record if "2-D" in str(w.message)]
    assert len(found) == 1 and issubclass(found[0].category, UserWarning)
    assert "test_tasks_and_regions.py" in str(found[0].message) and found[0].filename == __file__
