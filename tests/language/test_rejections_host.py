# SPDX-License-Identifier: Apache-2.0
"""HOST orchestrators: window allocation, views, dispatch, tiers (03 sections 3, 4, 9.2)."""

import warnings

import pytest
from pypto.language.parser import diagnostics as d
from rejections import define, indent

TEXT = """
P2 = 2

@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def k(self, x: pl.Tensor[[1, 64], pl.FP32], y: pl.Out[pl.Tensor[[1, 64], pl.FP32]]):
        y = pl.store(pl.load(x, [0, 0], [1, 64]), [0, 0], y)
        return y

    @pl.function(type=pl.FunctionType.InCore)
    def kw(self, x: pl.Tensor[[1, 64], pl.FP32], w: pld.DistributedTensor[[1, 64], pl.FP32]):
        w = pl.store(pl.load(x, [0, 0], [1, 64]), [0, 0], w)
        return w

    @pl.function(type=pl.FunctionType.Orchestration)
    def plain(self, x: pl.Tensor[[1, 64], pl.FP32], y: pl.Out[pl.Tensor[[1, 64], pl.FP32]], r: pl.Scalar[pl.INT32]):
        {orch}
        y = self.k(x, y)
        return y

    @pl.function(type=pl.FunctionType.Orchestration)
    def win(self, x: pl.Tensor[[1, 64], pl.FP32], w: pld.DistributedTensor[[1, 64], pl.FP32]):
        w = self.kw(x, w)
        return w

    @pl.function(level=pl.Level.HOST, role=pl.Role.SubWorker)
    def sub(x: pl.Tensor[[1, 64], pl.FP32]):
        ...

    @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
    def host(self, x: pl.Tensor[[2, 1, 64], pl.FP32], y: pl.Out[pl.Tensor[[2, 1, 64], pl.FP32]], n: pl.Scalar[pl.INT32]):
{body}
        for q in pl.range(pld.world_size()):
            self.plain(x[q], y[q], q, device=q)
        return y
"""

BUF = "b = pld.alloc_window_buffer([1, 64], dtype=pl.FP32)\nw = pld.window(b, [1, 64], dtype=pl.FP32)\n"
LOOP = BUF + "for r in pl.range({}):\n    self.win(x[r], w, device={})"

SCOPE = "with pl.at(level=pl.Level.CHIP, role=pl.Role.Orchestrator):\n    with pl.at(level=pl.Level.CORE_GROUP):\n"

CASES = [
    # D-22: intermediates stand at the top level
    (
        "for r in pl.range(2):\n    t = pl.create_tensor([1, 64], dtype=pl.FP32)\n    self.plain(x[r], t, 1, device=r)",
        d.InvalidOperationError,
        ["pl.create_tensor", "inside a loop of the HOST orchestrator 'host'", "hoist it above the loop"],
    ),
    # D-33, X-7: a device scope has no device=
    (
        BUF + SCOPE + "        w[:] = x[0]",
        d.ParserTypeError,
        ["X-7", "the window 'w'", "has no device=", "dispatch that with device=r"],
    ),
    # W-2, X-10
    ("pld.alloc_window_buffer(64)", d.ParserError, ["must appear as the RHS of a simple assignment"]),
    (
        "w = pld.window(pld.alloc_window_buffer(256), [1, 64], dtype=pl.FP32)",
        d.ParserError,
        ["must appear as the RHS of a simple assignment"],
    ),
    ("a, b = pld.alloc_window_buffer(64)", d.ParserError, ["must appear as the RHS of a simple assignment"]),
    ("b = pld.alloc_window_buffer(64, name='b')", d.ParserError, ["'name' kwarg cannot be passed explicitly"]),
    (BUF + "b = pld.alloc_window_buffer(64)", d.ParserError, ["already declared"]),
    (
        "b = pld.alloc_window_buffer(64, dtype=pl.FP32)",
        d.ParserError,
        ["dtype= is only valid when the first argument is a shape"],
    ),
    ("b = pld.alloc_window_buffer([64])", d.ParserError, ["requires dtype="]),
    ("b = pld.alloc_window_buffer([], dtype=pl.FP32)", d.ParserError, ["shape must be non-empty"]),
    ("b = pld.alloc_window_buffer([0, 64], dtype=pl.FP32)", d.ParserError, ["all dimensions must be positive"]),
    ("b = pld.alloc_window_buffer(0)", d.ParserError, ["all dimensions must be positive"]),
    # W-5, X-12
    ("b = pld.alloc_window_buffer(256)", Exception, ["no pld.tensor.window materialisation", "b"]),
    (BUF, Exception, ["is not consumed by any", "b"]),
    # W-20, W-22, X-13, X-14
    ("w = pld.window(x, [1, 64], dtype=pl.FP32)", d.ParserError, ["Ptr handle"]),
    ("b = pld.alloc_window_buffer(256)\nw = pld.window(b, [1, 64])", d.ParserError, ["dtype"]),
    (
        "b = pld.alloc_window_buffer(256)\nw = pld.window(b, [1, 64], dtype=pl.FP32, foo=1)",
        d.ParserError,
        ["unexpected keyword argument"],
    ),
    (
        "b = pld.alloc_window_buffer(64)\nw = pld.window(b, [1, 64], dtype=pl.FP32)",
        d.ParserError,
        ["X-13", "256", "64"],
    ),
    (
        "b = pld.alloc_window_buffer(256)\nw: pld.DistributedTensor[[2, 64], pl.FP32] = pld.window(b, [1, 64], dtype=pl.FP32)",
        d.ParserError,
        ["has shape dimension 0 = 2"],
    ),
    # X-3, T-2
    (
        "b = pld.alloc_window_buffer(256)\nw = pld.window(b, [1, 64], dtype=pl.FP32)\nfor r in pl.range(2):\n"
        "    self.plain(w, y[r], r, device=r)",
        d.ParserError,
        ["DistributedTensor", "Tensor", "plain", "'x'"],
    ),
    ("for r in pl.range(2):\n    self.win(x[r], x[r], device=r)", d.ParserError, ["DistributedTensor", "window"]),
    (
        "b = pld.alloc_window_buffer(256)\nfor r in pl.range(2):\n    self.win(x[r], b, device=r)",
        d.ParserError,
        ["pld.window"],
    ),
    #
    (LOOP.format("pld.world_size()", "1 - r"), d.ParserError, ["X-5"]),
    (LOOP.format("pld.world_size()", "n"), d.ParserError, ["X-5"]),
    (LOOP.format("0, 4, 2", "r"), d.ParserError, ["non-unit-step loop is not supported"]),
    (LOOP.format("n", "r"), d.ParserError, ["X-5"]),
    (LOOP.format("2", "-1"), d.ParserError, ["X-5"]),
    #
    (BUF + "self.win(x[0], w)", d.ParserError, ["X-7", "device"]),
    #
    ("self.k(x[0], y[0])", d.ParserError, ["X-9", "'k'"]),
    # X-18, W-24
    (BUF + "self.sub(w)", d.ParserError, ["DistributedTensor"]),
    (BUF + "v = w[0, 0]", d.ParserError, ["host"]),
    (BUF + "w[0:1, :] = x[0]", d.ParserError, ["host"]),
    # D-22
    ("t = pl.add(x, 1.0)", (ValueError, d.ParserError), ["Misplaced"]),
    # D-34, X-15
    ("self.plain(x[0, :, 0:32], y[0], 0, device=0)", d.ParserError, ["'x'"]),
    #
    ("r = pld.rank(pld.get_comm_ctx(x))", d.ParserError, []),
    # O-10
    ("r = pld.world_size(1)", d.ParserError, ["no positional arguments"]),
    ("r = pld.world_size(a=1)", d.ParserError, ["no keyword arguments"]),
    # C-1
    (
        BUF
        + "s = pld.alloc_window_buffer([pld.world_size()], dtype=pl.INT32)\nsig = pld.window(s, [pld.world_size()], "
        "dtype=pl.INT32)\nfor r in pl.range(pld.world_size()):\n    self.win(x[r], pld.tensor.allreduce(w, sig), device=r)",
        d.ParserError,
        ["must be a direct assignment"],
    ),
    # C-55
    (
        BUF + "for q in pl.range(2):\n    w = pld.tensor.allreduce(w)",
        d.ParserError,
        ["without an explicit signal is not supported inside a for/while"],
    ),
]


@pytest.mark.parametrize("body,cls,fragments", CASES, ids=[c[0][-70:] for c in CASES])
def test_rejected(tmp_path, body, cls, fragments):
    with pytest.raises(cls) as info:
        define(tmp_path, TEXT.format(body=indent(body, 8), orch="pass"))
    for fragment in fragments:
        assert fragment in str(info.value), str(info.value)


ORCH = [
    ("y2 = self.k(x, y, device=0)", ["'device'"]),
    ("w = pld.world_size()", ["HOST"]),
    ("b = pld.alloc_window_buffer(64)", ["HOST"]),
    ("with pl.at(level=pl.Level.CORE_GROUP):\n            w = pld.world_size()", ["HOST"]),
]


@pytest.mark.parametrize("line,fragments", ORCH)
def test_rejected_on_the_device(tmp_path, line, fragments):  # 03 D-30, O-10, W-2
    with pytest.raises(d.ParserError) as info:
        define(tmp_path, TEXT.format(body="        pass", orch=line))
    for fragment in fragments:
        assert fragment in str(info.value)


def test_inside_a_device_scope_of_the_host(tmp_path):  # 03 O-10, W-2
    body = """
        with pl.at(level=pl.Level.CHIP, role=pl.Role.Orchestrator):
            with pl.at(level=pl.Level.CORE_GROUP):
                v = pld.world_size()
"""
    with pytest.raises(d.ParserError, match="InCore"):
        define(tmp_path, TEXT.format(body=body, orch="pass"))


ACCEPTED = [
    LOOP.format("pld.world_size()", "r"),
    LOOP.format("2", "r"),
    LOOP.format("1, 2", "r"),
    BUF + "self.win(x[0], w, device=0)\nself.win(x[1], w, device=1)",
    BUF + "for r in pl.parallel(pld.world_size()):\n    dev = r\n    self.win(x[r], w, device=dev)",
    BUF + "P = pld.world_size()\nfor r in pl.range(P):\n    self.win(x[r], w, device=r)",
    "self.plain(x[0], y[0], 0)",
    "for r in pl.range(2):\n    self.plain(x[r], y[1 - r], (r + 1) % pld.world_size(), device=1 - r)",
    "t = pl.create_tensor([1, 64], dtype=pl.FP32)\nt = self.plain(x[0], t, 1, device=0)\nself.sub(t)",
    "b = pld.alloc_window_buffer(pld.world_size() * 64 * pl.FP32.get_byte())\n"
    "for r in pl.range(pld.world_size()):\n    w = pld.window(b, [64], dtype=pl.FP32)\n    self.win(x[r], w, device=r)",
]


@pytest.mark.parametrize("body", ACCEPTED)
def test_accepted(tmp_path, body):  # 03 D-31, D-33, D-35, W-1, W-21, W-23
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        define(tmp_path, TEXT.format(body=indent(body, 8), orch="pass"))


def test_allocation_inside_a_rank_loop_warns(tmp_path):
    body = "for r in pl.range(pld.world_size()):\n" + indent(BUF + "self.win(x[r], w, device=r)", 4)
    with pytest.warns(UserWarning, match="X-11.*'b'"):
        define(tmp_path, TEXT.format(body=indent(body, 8), orch="pass"))


COLLECTIVE = """
@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def k(self, w: pld.DistributedTensor[[1, 64], pl.FP32], s: pld.DistributedTensor[[2, 1], pl.INT32],
          me: pl.Scalar[pl.INT32]):
        ctx = pld.get_comm_ctx(w)
{body}

    @pl.function(type=pl.FunctionType.Orchestration)
    def orch(self, w: pld.DistributedTensor[[1, 64], pl.FP32], s: pld.DistributedTensor[[2, 1], pl.INT32],
             me: pl.Scalar[pl.INT32]):
        self.k(w, s, me)

    @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
    def host(self, x: pl.Tensor[[2, 64], pl.FP32]):
        wb = pld.alloc_window_buffer([1, 64], dtype=pl.FP32)
        sb = pld.alloc_window_buffer([2, 1], dtype=pl.INT32)
        for r in pl.range(2):
            w = pld.window(wb, [1, 64], dtype=pl.FP32)
            s = pld.window(sb, [2, 1], dtype=pl.INT32)
            self.orch(w, s, r, device=r)
"""


@pytest.mark.parametrize(
    "body", ["if pld.rank(ctx) == 0:\n    w = pld.tensor.allreduce(w, s)", "if me == 0:\n    pld.tensor.barrier(s)"]
)
def test_collective_under_a_rank_condition_warns(tmp_path, body):
    with pytest.warns(UserWarning, match="X-33"):
        define(tmp_path, COLLECTIVE.format(body=indent(body, 8)))


def test_collective_on_all_ranks_is_silent(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        define(tmp_path, COLLECTIVE.format(body="        for i in pl.range(3):\n            s = pld.tensor.barrier(s)"))


LANES = ["for i in pl.split_aiv(2, mode=pl.SplitMode.NONE):\n    pld.tensor.barrier(s)"]


@pytest.mark.parametrize("body", LANES)
def test_collective_in_lanes_is_rejected(tmp_path, body):
    with pytest.raises(d.ParserError, match="X-32"):
        define(tmp_path, COLLECTIVE.format(body=indent(body, 8)))


def test_float_scalar_arithmetic_in_a_kernel_warns(tmp_path):
    with pytest.warns(UserWarning, match="X-27"):
        define(tmp_path, COLLECTIVE.format(body="        v = pl.cast(me, pl.FP32) * 2.0"))


def test_defer_wait_belongs_in_a_waiter_region(tmp_path):  # O-27, X-63
    body = "        pld.system.defer_wait(s, [0, 0], 1, cmp=pld.WaitCmp.Ge)"
    with pytest.raises(d.ParserError, match="X-63.*clause a"):
        define(tmp_path, COLLECTIVE.format(body=body))


WAITER = """
@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def waiter(self, s: pld.DistributedTensor[[4, 1], pl.INT32], n: pl.Tensor[[4], pl.INT32], i: pl.Scalar[pl.INDEX]):
        pl.func_attr({{"deferred_waiter": True}})
{body}

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, s: pld.DistributedTensor[[4, 1], pl.INT32], n: pl.Tensor[[4], pl.INT32]):
        _, tid = {call}
"""
PLAIN = "pl.submit(self.waiter, s, n, 1)"
WAITS = "v = pl.read(n, [i])\nfor j in pl.range(i):\n    pld.system.defer_wait(s, [j, 0], v, cmp=pld.WaitCmp.Ge)"
BROKEN_WAITERS = [
    (WAITS + "\npl.write(n, [0], v)", PLAIN, "X-63.*clause c"),
    ("pld.system.wait(s, [0, 0], 1, cmp=pld.WaitCmp.Ge)\n" + WAITS, PLAIN, "X-63.*clause c"),
    ("r = pl.slice(s, [1, 1], [0, 0])\npld.system.defer_wait(r, [0, 0], 1, cmp=pld.WaitCmp.Ge)", PLAIN, "X-63"),
    (WAITS, "pl.submit(self.waiter, s, n, 1, allow_early_resolve=True)", "X-63.*clause b"),
    (WAITS, "pl.spmd_submit(self.waiter, s, n, 1, core_num=2)", "X-63.*clause b"),
]


def test_lowered_waiter_is_read_back(tmp_path):  # O-27, 01 L-79
    define(tmp_path, WAITER.format(body=indent(WAITS, 8), call=PLAIN))


@pytest.mark.parametrize("body,call,message", BROKEN_WAITERS)
def test_lowered_waiter_keeps_the_contract(tmp_path, body, call, message):  # O-27, X-63
    with pytest.raises(d.ParserError, match=message):
        define(tmp_path, WAITER.format(body=indent(body, 8), call=call))
