# SPDX-License-Identifier: Apache-2.0
"""The virtual clock: worked values of the timing model in whole programs, order by time, timelines, parameters."""

from __future__ import annotations

import dataclasses
import itertools
import json

import numpy as np
import pypto.language as pl
import pypto.language.distributed as pld
import pytest
from pypto import ir
from pypto.ir.distributed_compiled_program import DistributedConfig
from pypto.runtime import RunConfig, SimOptions, benchmark, last_report

N = 64


@pl.program
class AddTiles:
    @pl.function(type=pl.FunctionType.InCore)
    def kernel(
        self,
        a: pl.Tensor[[N, N], pl.FP32],
        b: pl.Tensor[[N, N], pl.FP32],
        o: pl.Out[pl.Tensor[[N, N], pl.FP32]],
    ) -> pl.Tensor[[N, N], pl.FP32]:
        x = pl.load(a, [0, 0], [N, N])
        y = pl.load(b, [0, 0], [N, N])
        e = pl.exp(pl.add(x, y))
        return pl.store(e, [0, 0], o)

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self,
        a: pl.Tensor[[N, N], pl.FP32],
        b: pl.Tensor[[N, N], pl.FP32],
        o: pl.Out[pl.Tensor[[N, N], pl.FP32]],
    ) -> pl.Tensor[[N, N], pl.FP32]:
        o = self.kernel(a, b, o)
        return o


@pl.program
class Product:
    @pl.function(type=pl.FunctionType.InCore)
    def kernel(
        self,
        a: pl.Tensor[[128, 64], pl.FP16],
        b: pl.Tensor[[64, 128], pl.FP16],
        o: pl.Out[pl.Tensor[[128, 128], pl.FP32]],
    ) -> pl.Tensor[[128, 128], pl.FP32]:
        am = pl.load(a, [0, 0], [128, 64], target_memory=pl.MemorySpace.Mat)
        bm = pl.load(b, [0, 0], [64, 128], target_memory=pl.MemorySpace.Mat)
        al = pl.move(am, target_memory=pl.MemorySpace.Left)
        br = pl.move(bm, target_memory=pl.MemorySpace.Right)
        return pl.store(pl.matmul(al, br), [0, 0], o)

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self,
        a: pl.Tensor[[128, 64], pl.FP16],
        b: pl.Tensor[[64, 128], pl.FP16],
        o: pl.Out[pl.Tensor[[128, 128], pl.FP32]],
    ) -> pl.Tensor[[128, 128], pl.FP32]:
        o = self.kernel(a, b, o)
        return o


@pl.program
class ProductOfTensors:
    """The same without a word about memories."""

    @pl.function(type=pl.FunctionType.Opaque)
    def main(
        self,
        a: pl.Tensor[[128, 64], pl.FP16],
        b: pl.Tensor[[64, 128], pl.FP16],
        o: pl.Out[pl.Tensor[[128, 128], pl.FP32]],
    ) -> pl.Tensor[[128, 128], pl.FP32]:
        with pl.at(level=pl.Level.CORE_GROUP):
            o = pl.assemble(o, pl.matmul(a, b, out_dtype=pl.FP32), [0, 0])
        return o


@pl.program
class Steps:
    """Tasks one after the other, with next to nothing in them."""

    @pl.function(type=pl.FunctionType.InCore)
    def step(self, o: pl.InOut[pl.Tensor[[1, 8], pl.FP32]]) -> pl.Tensor[[1, 8], pl.FP32]:
        return o

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, n: pl.Scalar[pl.INDEX], o: pl.InOut[pl.Tensor[[1, 8], pl.FP32]]) -> pl.Tensor[[1, 8], pl.FP32]:
        for _ in pl.range(n):
            o = self.step(o)
        return o


def run(compiled, *args, threads: int = 0, **sim):
    sim = {"device_time": True, **sim}
    platform = compiled.platform
    compiled(*args, config=RunConfig(platform=platform, sim=SimOptions(threads=threads, **sim)))
    return last_report()


def durations(report) -> dict[str, list[float]]:
    """Lengths of the events by name, in ns."""
    out: dict[str, list[float]] = {}
    for kind, _, _, _, begin, end, name, *_ in report.events:
        if kind in ("instruction", "transfer", "remote"):
            out.setdefault(name, []).append((end - begin) * 1000)
    return out


def add_args(rng):
    a, b = rng.standard_normal((2, N, N), dtype=np.float32)
    return a, b, np.zeros((N, N), np.float32)


def product_args(rng):
    a = rng.standard_normal((128, 64)).astype(np.float16)
    b = rng.standard_normal((64, 128)).astype(np.float16)
    return a, b, np.zeros((128, 128), np.float32)


def test_tiles_cost_what_the_model_says(rng, tmp_path):
    # H-75 (values of the table); fused operations are charged one by one
    compiled = ir.compile(AddTiles, platform="a2a3sim")
    args = add_args(rng)
    report = run(compiled, *args, trace=tmp_path / "t.json")
    np.testing.assert_allclose(args[2], np.exp(args[0] + args[1]), rtol=1e-5)
    d = durations(report)
    assert d["load"] == pytest.approx([176.7, 176.7], rel=5e-3)
    assert d["add"] == pytest.approx([82.7], rel=5e-3)
    assert d["exp"] == pytest.approx([(31 + 2 * 64) / 1.85], rel=5e-3)
    assert d["store"] == pytest.approx([139.0], rel=5e-3)


def test_products_cost_what_the_model_says(rng, tmp_path):
    # H-75, H-64: moves and products on their pipes
    compiled = ir.compile(Product, platform="a2a3sim")
    args = product_args(rng)
    d = durations(run(compiled, *args, trace=tmp_path / "t.json"))
    assert d["move"] == pytest.approx([76.9, 112.4], rel=5e-3)
    assert d["matmul"] == pytest.approx([149.7], rel=5e-3)
    assert d["store"] == pytest.approx([396.5], rel=5e-3)
    assert d["load"] == pytest.approx([115 + 16384 / (135 * 1.073741824)] * 2, rel=5e-3)
    a5 = ir.compile(Product, platform="a5sim")
    assert durations(run(a5, *args, trace=tmp_path / "a5.json"))["matmul"] == pytest.approx([170.3], rel=5e-3)


def test_tensor_level_code_costs_the_same(rng):
    # A.13: what the device form adds (loads, moves, the drain) is charged where it is needed
    args = product_args(rng)
    tiles = run(ir.compile(Product, platform="a2a3sim"), *args)
    wanted = args[2].copy()
    tensors = run(ir.compile(ProductOfTensors, platform="a2a3sim"), *args)
    np.testing.assert_array_equal(args[2], wanted)
    assert tensors.device_time_us == pytest.approx(tiles.device_time_us, rel=0.01)


@pl.program
class Channel:
    """A vector core sends a tile to the cube core of its cluster and takes the square back."""

    @pl.function(type=pl.FunctionType.AIV)
    def feeder(
        self, x: pl.Tensor[[16, 16], pl.FP32], out: pl.Out[pl.Tensor[[16, 16], pl.FP32]]
    ) -> pl.Tensor[[16, 16], pl.FP32]:
        back = pl.reserve_buffer(name="c2v", size=2048, base=pl.AUTO)
        peer = pl.import_peer_buffer(name="v2c", peer_func="square")
        pl.aiv_initialize_pipe(back, peer, dir_mask=3, slot_size=1024, slot_num=2)
        pl.tpush_to_aic(pl.load(x, [0, 0], [16, 16]), split=0)
        p: pl.Tile[[16, 16], pl.FP32, pl.Mem.Vec] = pl.tpop_from_aic(split=0)
        out = pl.store(pl.mul(p, 2.0), [0, 0], out)
        pl.tfree_to_aic(p)
        return out

    @pl.function(type=pl.FunctionType.AIC)
    def square(self):
        ring = pl.reserve_buffer(name="v2c", size=2048, base=pl.AUTO)
        peer = pl.import_peer_buffer(name="c2v", peer_func="feeder")
        pl.aic_initialize_pipe(peer, ring, dir_mask=3, slot_size=1024, slot_num=2)
        s: pl.Tile[[16, 16], pl.FP32, pl.Mem.Mat] = pl.tpop_from_aiv(split=0)
        p = pl.matmul(s, s)
        pl.tfree_to_aiv(s)
        pl.tpush_to_aiv(p, split=0)

    @pl.function(type=pl.FunctionType.Group)
    def pair(
        self, x: pl.Tensor[[16, 16], pl.FP32], out: pl.Out[pl.Tensor[[16, 16], pl.FP32]]
    ) -> pl.Tensor[[16, 16], pl.FP32]:
        self.square()
        out = self.feeder(x, out)
        return out

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self, x: pl.Tensor[[16, 16], pl.FP32], out: pl.Out[pl.Tensor[[16, 16], pl.FP32]]
    ) -> pl.Tensor[[16, 16], pl.FP32]:
        out = self.pair(x, out)
        return out


@pytest.mark.parametrize(("platform", "signal_us"), [("a2a3sim", 0.100), ("a5sim", 0.060)])
def test_rings_between_cores(rng, tmp_path, platform, signal_us):
    # H-72: drain into the slot, the signal, and on a2a3 the consumer's load
    x = rng.standard_normal((16, 16), dtype=np.float32)
    out = np.zeros_like(x)
    report = run(ir.compile(Channel, platform=platform), x, out, trace=tmp_path / "t.json")
    np.testing.assert_allclose(out, 2 * x @ x, rtol=1e-3, atol=1e-4)
    check_timeline(json.loads((tmp_path / "t.json").read_text()), report)
    pushes = sorted((e for e in report.events if e[6] == "tpush"), key=lambda e: e[4])
    waits = sorted((e for e in report.events if e[0] == "wait"), key=lambda e: e[5])
    assert [e[3] for e in pushes] == ["MTE3", "FIX"] and len(waits) == 2
    for push, wait in zip(pushes, waits, strict=True):
        assert wait[5] == pytest.approx(push[5] + signal_us, abs=1e-6)
    pops = sorted((e for e in report.events if e[6] == "tpop"), key=lambda e: e[4])
    assert [e[3] for e in pops] == (["MTE2", "MTE2"] if platform == "a2a3sim" else [])
    assert durations(report)["muls"]  # a scalar operand has instructions of its own


def test_dependent_tasks_hop(rng):
    # H-75: 1.50 us per hop (serve, start, seen); nothing of the host in it
    compiled = ir.compile(Steps, platform="a2a3sim")
    o = np.zeros((1, 8), np.float32)
    times = {n: run(compiled, n, o).device_time_us for n in (1, 2, 9)}
    assert times[1] == pytest.approx(0.75 + 1.50, rel=5e-3)
    assert (times[9] - times[2]) / 7 == pytest.approx(1.50, rel=5e-3)


# ------------------------------------------------------------------------------------------------ between ranks


@pl.jit.incore
def fetch(
    y: pl.Out[pl.Tensor[[1, 1024], pl.FP32]],
    src: pld.DistributedTensor[[1, 1024], pl.FP32],
    dst: pld.DistributedTensor[[1, 1024], pl.FP32],
    signal: pld.DistributedTensor[[1, 1], pl.INT32],
):
    ctx = pld.get_comm_ctx(src)
    me = pld.rank(ctx)
    other = (me + 1) % pld.nranks(ctx)
    src = pl.store(pl.tile.full([1, 1024], dtype=pl.FP32, value=3.0), [0, 0], src)
    pld.system.notify(signal, other, [0, 0], 1, op=pld.NotifyOp.AtomicAdd)
    pld.system.wait(signal, [0, 0], 1, cmp=pld.WaitCmp.Ge)
    pld.tensor.get(dst, other, src)
    y = pl.store(pl.load(dst, [0, 0], [1, 1024]), [0, 0], y)
    return y


@pl.jit
def fetch_on_device(
    y: pl.Out[pl.Tensor[[1, 1024], pl.FP32]],
    src: pld.DistributedTensor[[1, 1024], pl.FP32],
    dst: pld.DistributedTensor[[1, 1024], pl.FP32],
    signal: pld.DistributedTensor[[1, 1], pl.INT32],
):
    y = fetch(y, src, dst, signal)
    return y


@pl.jit.host
def fetch_program(y: pl.Out[pl.Tensor[[2, 1, 1024], pl.FP32]]):
    src_buf = pld.alloc_window_buffer([1, 1024], dtype=pl.FP32)
    dst_buf = pld.alloc_window_buffer([1, 1024], dtype=pl.FP32)
    signal_buf = pld.alloc_window_buffer([1, 1], dtype=pl.INT32)
    for r in pl.range(pld.world_size()):
        src = pld.window(src_buf, [1, 1024], dtype=pl.FP32)
        dst = pld.window(dst_buf, [1, 1024], dtype=pl.FP32)
        signal = pld.window(signal_buf, [1, 1], dtype=pl.INT32)
        fetch_on_device(y[r], src, dst, signal, device=r)


def fetch_config(**sim) -> RunConfig:
    return RunConfig(
        platform="a2a3sim",
        distributed_config=DistributedConfig(device_ids=[0, 1], num_sub_workers=0),
        sim=SimOptions(**sim) if sim else None,
    )


@pytest.fixture
def fetching(rng):
    y = rng.standard_normal((2, 1, 1024), dtype=np.float32)
    return fetch_program.compile(y, config=fetch_config()), y


def test_reads_of_a_peer_and_signals(fetching, tmp_path):
    # H-75: get of 4 KiB, one piece: 570 + 81.9 on the link, 58 + 20.2 into memory; H-73: signals
    compiled, y = fetching
    compiled(y, config=fetch_config(trace=tmp_path / "t.json"))
    assert (y == 3.0).all()
    report = last_report()
    events = report.events
    for rank in (0, 1):
        near, far = sorted((e for e in events if e[1] == rank and e[6] == "get"), key=lambda e: e[0] == "transfer")
        assert (near[0], far[0]) == ("remote", "transfer") and near[11] == 1 - rank
        assert (far[5] - near[4]) * 1000 == pytest.approx(730 + 12 / 1.85, rel=0.01)  # and a flag between pipes
    notifies = {e[1]: e for e in events if e[0] == "notify"}
    # Nobody goes on before the other's signal could be seen: 600 ns on the way, 50 ns to find it.
    for rank in (0, 1):
        get = min(e[4] for e in events if e[1] == rank and e[6] == "get")
        assert get >= notifies[1 - rank][4] + 0.65 - 1e-9
    # Dispatches of the host follow each other by 3.5 us: the first rank waits for the second.
    assert report.ranks[0].wait_us > 3 and report.ranks[0].wait_us > report.ranks[1].wait_us
    assert report.ranks[0].device_time_us > report.ranks[1].device_time_us
    flows = [e for e in json.loads((tmp_path / "t.json").read_text())["traceEvents"] if e.get("cat") == "signal"]
    assert [e["ph"] for e in flows].count("s") == [e["ph"] for e in flows].count("f") == 2


# ------------------------------------------------------------------------------------------- order of the clock


@pl.program
class Adds:
    """Blocks add to one cell; the lower its number, the longer a block computes before."""

    @pl.function(type=pl.FunctionType.InCore)
    def kernel(
        self, x: pl.Tensor[[4, 8], pl.FP32], o: pl.InOut[pl.Tensor[[1, 8], pl.FP32]]
    ) -> pl.Tensor[[1, 8], pl.FP32]:
        i = pl.get_block_idx()
        t = pl.load(x, [i, 0], [1, 8])
        for _ in pl.range((3 - i) * 200):
            t = pl.neg(pl.neg(t))
        o = pl.store(t, [0, 0], o, atomic=pl.AtomicType.Add)
        return o

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self, x: pl.Tensor[[4, 8], pl.FP32], o: pl.InOut[pl.Tensor[[1, 8], pl.FP32]]
    ) -> pl.Tensor[[1, 8], pl.FP32]:
        with pl.spmd(4):
            o = self.kernel(x, o)
        return o


def test_timed_orders_unordered_additions(rng):
    # SIM-3, H-63: fast adds in the order of blocks, timed in that of its clock
    compiled = ir.compile(Adds, platform="a2a3sim")
    x = (rng.standard_normal((4, 8)) * np.array([1e8, 30.0, 1e3, 1e8])[:, None]).astype(np.float32)

    def sum_in(order):
        total = np.zeros(8, np.float32)
        for i in order:
            total = (total + x[i]).astype(np.float32)
        return total

    assert (sum_in([0, 1, 2, 3]) != sum_in([3, 2, 1, 0])).any()
    for schedule, order in (("fast", [0, 1, 2, 3]), ("timed", [3, 2, 1, 0])):
        for _ in range(2):
            o = np.zeros((1, 8), np.float32)
            run(compiled, x, o, schedule=schedule)
            np.testing.assert_array_equal(o[0], sum_in(order), err_msg=schedule)


@pytest.mark.parametrize("schedule", ["fast", "timed"])
def test_times_do_not_depend_on_the_host(fetching, rng, schedule):
    # H-63, SIM-5, BEN-3
    compiled, y = fetching
    seen = set()
    for threads in (1, 2, 0, 3):
        compiled(y, config=fetch_config(schedule=schedule, threads=threads, device_time=True))
        report = last_report()
        seen.add((report.device_time_us, *(r.device_time_us for r in report.ranks), *(r.wait_us for r in report.ranks)))
    assert len(seen) == 1
    add = ir.compile(AddTiles, platform="a2a3sim")
    assert len({run(add, *add_args(rng), schedule=schedule, threads=t).device_time_us for t in (1, 2, 1)}) == 1


def test_benchmark_has_device_times(fetching, rng):
    # BEN-1, BEN-3: device times of the clock, equal in equal rounds, ranks apart
    args = add_args(rng)
    stats = benchmark(ir.compile(AddTiles, platform="a2a3sim"), args, rounds=4, warmup=1)
    # submit, serve, start, the kernel, seen; the kernel is at least its loads, both operations and the store
    least = 0.75 + 0.1 + 0.8 + 0.6 + (2 * 176.7 + 82.7 + 85.9 + 139.0) / 1000
    assert stats.device_wall_us == [stats.device_wall_us[0]] * 4
    assert least < stats.device_wall_us[0] < least + 0.1
    assert 0 < stats.invocations[0].effective_us <= stats.device_wall_us[0]
    assert "simulated time; parameters: default" in str(stats)
    compiled, y = fetching
    both = benchmark(compiled, [y], rounds=3, warmup=0)
    assert len(set(both.device_wall_us)) == 1
    per_rank = both.per_rank()
    assert per_rank[0][0] > per_rank[1][0] > 0  # rank 0 waits for rank 1, whose dispatch comes later
    assert both.device_wall_us[0] == max(per_rank[0][0], per_rank[1][0])


# --------------------------------------------------------------------------------------------------- timeline


def check_timeline(document, report) -> None:
    events = document["traceEvents"]
    assert document["displayTimeUnit"] == "ns"
    assert [e["ts"] for e in events] == sorted(e["ts"] for e in events)
    names = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"}
    slices = [e for e in events if e["ph"] == "X"]
    by_thread: dict = {}
    for e in slices:
        assert e["dur"] >= 0
        by_thread.setdefault((e["pid"], e["tid"]), []).append(e)
    for thread, on in by_thread.items():
        assert thread in names
        if names[thread].split()[-1] in ("V", "M", "MTE1", "MTE2", "MTE3", "FIX", "S"):
            for first, second in itertools.pairwise(on):
                assert first["ts"] + first["dur"] <= second["ts"] + 1e-9, names[thread]
    # Nothing happens outside a task, and tasks of one core do not overlap.
    tasks = [e for e in slices if e["cat"] == "task"]
    for e in slices:
        if e["cat"] in ("instruction", "transfer", "remote", "wait", "notify"):
            core = names[e["pid"], e["tid"]].split()[:2]
            inside = [
                t
                for t in tasks
                if names[t["pid"], t["tid"]].split() == core
                and t["pid"] == e["pid"]
                and t["ts"] - 1e-9 <= e["ts"]
                and e["ts"] + e["dur"] <= t["ts"] + t["dur"] + 1e-9
            ]
            assert len(inside) == 1, e
    # The dispatches make up the device time.
    begin = min(d["begin_us"] for d in report.dispatches)
    end = max(d["end_us"] for d in report.dispatches)
    assert end - begin == pytest.approx(report.device_time_us, abs=1e-6)
    last = max(e["ts"] + e["dur"] for e in tasks)
    assert end == pytest.approx(last + 0.6, abs=1e-6)  # the control processor sees it


@pytest.mark.parametrize("schedule", ["fast", "timed"])
def test_timelines_are_consistent(fetching, rng, tmp_path, schedule):
    # OBS-4, OBS-5, H-76, H-77
    compiled, y = fetching
    texts = []
    for number, threads in enumerate((1, 2)):
        path = tmp_path / f"{number}.json"
        compiled(y, config=fetch_config(schedule=schedule, threads=threads, trace=path))
        texts.append(path.read_text())
        check_timeline(json.loads(texts[-1]), last_report())
    assert texts[0] == texts[1]
    other = json.loads(texts[0])["otherData"]
    assert other["note"] == "simulated time; parameters: default"
    assert other["parameters"]["gm_vec.beta"] == {"value": 247.16, "tag": "F"}
    for program, args in ((AddTiles, add_args(rng)), (Product, product_args(rng)), (Adds, None)):
        args = args or (rng.standard_normal((4, 8)).astype(np.float32), np.zeros((1, 8), np.float32))
        path = tmp_path / f"{program.name}.json"
        report = run(ir.compile(program, platform="a2a3sim"), *args, schedule=schedule, trace=path)
        check_timeline(json.loads(path.read_text()), report)
        saved = tmp_path / "saved.json"
        report.save_timeline(saved)
        assert json.loads(saved.read_text()) == json.loads(path.read_text())


def test_swimlane_levels(rng, tmp_path):
    # OBS-2: times of the clock per task and core; a higher level has more in the timeline
    compiled = ir.compile(AddTiles, platform="a2a3sim")
    kinds = {}
    for level in (1, 2, 4):
        compiled(*add_args(rng), config=RunConfig(platform="a2a3sim", enable_chip_swimlane=level))
        folder = compiled.output_dir / "dfx_outputs"
        data = json.loads((folder / "chip_swimlane_records.json").read_text())
        (task,) = data["tasks"]
        assert task["duration_us"] > 0.5 and data["note"].startswith("simulated time")
        assert task["dispatch_time_us"] < task["start_time_us"] < task["end_time_us"] < task["finish_time_us"]
        events = json.loads((folder / "timeline.json").read_text())["traceEvents"]
        kinds[level] = {e.get("cat") for e in events if e["ph"] == "X"}
    assert kinds[1] == {"task", "host"}
    assert kinds[2] == kinds[1] | {"transfer"}
    assert kinds[4] == kinds[2] | {"instruction"}


# ------------------------------------------------------------------------------------------------- parameters


def test_parameters_from_a_file(rng, tmp_path, monkeypatch):
    # H-76, H-77
    compiled = ir.compile(AddTiles, platform="a2a3sim")
    before = run(compiled, *add_args(rng))
    file = tmp_path / "params.json"
    file.write_text(json.dumps({"a2a3": {"op.add.b": 25 + 1850, "disp.seen": 1600}, "a5": {"op.add.a": 2}}))
    monkeypatch.setenv("PYPTO_HW_PARAMS", str(file))
    after = run(compiled, *add_args(rng))
    assert after.device_time_us - before.device_time_us == pytest.approx(1.0 + 1.0, rel=1e-6)
    assert after.time_note == f"simulated time; parameters: {file}" and after.time_note in repr(after)
    assert after.parameters["disp.seen"] == {"value": 1600, "tag": "file"}
    assert after.to_dict()["time"] == after.time_note
    for text, message in (
        ('{"a2a3": {"gm_vec.betta": 3}}', "'gm_vec.betta'.*unknown key"),
        ('{"a2a3": {"gm_vec.beta": 0}}', "'gm_vec.beta'.*positive"),
        ('{"a5": {"link.pair": -1}}', "'link.pair'.*positive"),
        ('{"a2a3": {"disp.seen": "fast"}}', "'disp.seen'.*expected a number"),
        ('{"a9": {}}', "unknown key 'a9'"),
        ("[]", "expected an object"),
        ("{", "not JSON"),
    ):
        file.write_text(text)
        with pytest.raises(ValueError, match=message):
            run(compiled, *add_args(rng))
    monkeypatch.setenv("PYPTO_HW_PARAMS", str(tmp_path / "none.json"))
    with pytest.raises(ValueError, match="cannot read the file"):
        run(compiled, *add_args(rng))


def test_time_only_when_asked_for(rng):
    # section 22: device_time is off by default
    compiled = ir.compile(AddTiles, platform="a2a3sim")
    compiled(*add_args(rng), config=RunConfig(platform="a2a3sim"))
    report = last_report()
    assert report.device_time_us == 0 and not report.parameters and "simulated time" not in repr(report)
    assert dataclasses.asdict(report.ranks[0])["wait_us"] == 0
