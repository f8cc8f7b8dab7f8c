# SPDX-License-Identifier: Apache-2.0
"""The rows of the operations page whose examples are whole programs: channels, lanes, barriers, distribution."""

from __future__ import annotations

# ---------------------------------------------------------------- operations that need a program of their own

PROGRAMS = {
    "channel": """
@pl.program
class Channel:
    @pl.function(type=pl.FunctionType.AIV)
    def feeder(self, x: pl.Tensor[[16, 16], pl.FP32], out: pl.Out[pl.Tensor[[16, 16], pl.FP32]]
               ) -> pl.Tensor[[16, 16], pl.FP32]:
        back = pl.reserve_buffer(name="c2v", size=2048, base=pl.AUTO)
        peer = pl.import_peer_buffer(name="v2c", peer_func="square")
        pl.aiv_initialize_pipe(back, peer, dir_mask=3, slot_size=1024, slot_num=2)
        pl.tpush_to_aic(pl.mul(pl.load(x, [0, 0], [16, 16]), 2.0), split=0)
        p: pl.Tile[[16, 16], pl.FP32, pl.Mem.Vec] = pl.tpop_from_aic(split=0)
        out = pl.store(p, [0, 0], out)
        pl.tfree_to_aic(p)
        return out

    @pl.function(type=pl.FunctionType.AIC)
    def square(self):
        ring = pl.reserve_buffer(name="v2c", size=2048, base=pl.AUTO)
        peer = pl.import_peer_buffer(name="c2v", peer_func="feeder")
        pl.aic_initialize_pipe(peer, ring, dir_mask=3, slot_size=1024, slot_num=2)
        s = pl.tpop_from_aiv(shape=[16, 16], dtype=pl.FP32, split=0)
        p = pl.matmul(s, s)
        pl.tfree_to_aiv(s)
        pl.tpush_to_aiv(p, split=0)

    @pl.function(type=pl.FunctionType.Group)
    def pair(self, x: pl.Tensor[[16, 16], pl.FP32], out: pl.Out[pl.Tensor[[16, 16], pl.FP32]]
             ) -> pl.Tensor[[16, 16], pl.FP32]:
        self.square()
        out = self.feeder(x, out)
        return out

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: pl.Tensor[[16, 16], pl.FP32], out: pl.Out[pl.Tensor[[16, 16], pl.FP32]]
             ) -> pl.Tensor[[16, 16], pl.FP32]:
        out = self.pair(x, out)
        return out
""",
    "lanes": """
@pl.jit
def lanes(a: pl.Tensor[[32, 32], pl.FP32], out: pl.Out[pl.Tensor[[32, 32], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        t = pl.load(a, [0, 0], [32, 32])
        c = pl.matmul(t, t)
        for _ in pl.split_aiv(2, mode=pl.SplitMode.UP_DOWN):
            half = pl.aiv_shard(c)
            back = pl.aic_gather(pl.add(half, 1.0))
        out = pl.store(pl.matmul(back, t), [0, 0], out)
    return out
""",
    "barrier": """
@pl.jit
def barrier(x: pl.Tensor[[8, 32], pl.FP32], tmp: pl.Out[pl.Tensor[[8, 32], pl.FP32]],
            ws: pl.InOut[pl.Tensor[[16], pl.INT32]], out: pl.Out[pl.Tensor[[8, 32], pl.FP32]]):
    for i in pl.spmd(8):
        tmp = pl.store(pl.mul(pl.load(x, [i, 0], [1, 32]), 2.0), [i, 0], tmp)
        pl.system.syncall(core_type="aiv_only", mode="soft", gm_workspace=ws, used_cores=8)
        out = pl.store(pl.load(tmp, [7 - i, 0], [1, 32]), [i, 0], out)
    return tmp, out
""",
}
# Operation -> program that shows it.
SHOWN_IN = {
    **dict.fromkeys(
        "tpush_to_aiv tpush_to_aic tpop_from_aic tpop_from_aiv tfree_to_aic tfree_to_aiv aic_initialize_pipe "
        "aiv_initialize_pipe reserve_buffer import_peer_buffer".split(),
        "channel",
    ),
    "aiv_shard": "lanes",
    "aic_gather": "lanes",
    "syncall": "barrier",
}
PROGRAMS["events"] = """
@pl.jit
def events(x: pl.Tensor[[16, 16], pl.FP32], ws: pl.InOut[pl.Tensor[[256], pl.INT64]],
           out: pl.Out[pl.Tensor[[16, 16], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.system.set_ffts(ws)
        t = pl.load(x, [0, 0], [16, 16])
        c = pl.matmul(t, t)
        pl.system.sync_set(0, pipe=pl.PipeType.FIX, core_type="aic")
        pl.system.sync_wait(0, pipe=pl.PipeType.V, core_type="aiv")
        out = pl.store(pl.add(c, 1.0), [0, 0], out)
    return out
"""
SHOWN_IN |= dict.fromkeys(["sync_set", "sync_wait", "set_ffts"], "events")
PROGRAMS["waiter"] = """
@pl.jit.incore
def notify_next(signal: pld.DistributedTensor[[2, 1], pl.INT32]):
    me = pld.rank(pld.get_comm_ctx(signal))
    pld.system.notify(signal, 1 - me, [me, 0], 7, op=pld.NotifyOp.Set)

@pl.jit.incore
def show(y: pl.Out[pl.Tensor[[2, 1], pl.INT32]], signal: pld.DistributedTensor[[2, 1], pl.INT32]):
    for i in pl.range(2):
        pl.write(y, [i, 0], pl.read(signal, [i, 0]))
    return y

@pl.jit
def waiter(y: pl.Out[pl.Tensor[[2, 1], pl.INT32]], signal: pld.DistributedTensor[[2, 1], pl.INT32],
           me: pl.Scalar[pl.INT32]):
    notify_next(signal)
    with pl.at(level=pl.Level.CORE_GROUP) as arrived:
        pld.system.defer_wait(signal, [1 - me, 0], 7, cmp=pld.WaitCmp.Ge)
    y, _ = pl.submit(show, y, signal, deps=[arrived])
    return y

@pl.jit.host
def program(y: pl.Out[pl.Tensor[[2, 2, 1], pl.INT32]]):
    buffer = pld.alloc_window_buffer([2, 1], dtype=pl.INT32)
    for r in pl.range(pld.world_size()):
        signal = pld.window(buffer, [2, 1], dtype=pl.INT32)
        waiter(y[r], signal, r, device=r)
"""
SHOWN_IN["defer_wait"] = "waiter"


# ---------------------------------------------------------------- the distributed chapter: shown by the examples

PLD: dict[str, tuple[str, str, str]] = {
    "alloc_window_buffer": ("elements or bytes of one rank's slice", "any", "zeros"),
    "window": ("`shape`, of at most the buffer's elements", "any", "a view"),
    "get_comm_ctx": ("a handle", "-", "-"),
    "rank": ("a scalar", "INT32", "exact"),
    "nranks": ("a scalar", "INT32", "exact"),
    "world_size": ("a scalar", "INT32", "exact"),
    "remote_load": ("`shape` at `offsets` of a peer's slice", "any", "copies bits"),
    "remote_store": (
        "the source's valid region at `offsets`",
        "equal",
        "copies bits; `atomic=Add` adds per cell (03 O-37)",
    ),
    "put": ("whole tensors, or `shape` at the offsets", "equal", "copies bits; `atomic=Add` adds per cell (03 O-37)"),
    "get": ("whole tensors, or `shape` at the offsets", "equal", "copies bits"),
    "notify": ("one cell of a signal window", "INT32", "set or add; overflow is an error"),
    "wait": ("one cell of a signal window", "INT32", "exact"),
    "defer_wait": ("one cell of a signal window", "INT32", "exact"),
    "barrier": ("signal window of a cell per rank", "INT32 signal", "-"),
    "allreduce": (
        "equal on every rank",
        "FP16, BF16, FP32, INT32; INT32 signal",
        "by algorithm and mode, reproducible (03 C-12)",
    ),
    "broadcast": ("equal on every rank", "any; INT32 signal", "copies bits"),
    "allgather": ("one row to `n` rows", "any; INT32 signal", "copies bits"),
    "reduce_scatter": (
        "`n` rows to one",
        "FP16, BF16, FP32, INT32; INT32 signal",
        "by algorithm, reproducible (03 C-12)",
    ),
    "all_to_all": ("`n` rows to `n` rows", "any; INT32 signal", "copies bits"),
    "all_to_all_v": ("`n` blocks with counts", "any; INT32 counts and signal", "copies bits"),
}

SHOWN = {  # shapes, types, numerics of what PROGRAMS show
    "tpush_to_aiv tpush_to_aic": ("2-D tile of at most `slot_size` bytes", "any", "copies bits"),
    "tpop_from_aic tpop_from_aiv": ("`shape`, or the annotation of the name", "any", "copies bits"),
    "tfree_to_aic tfree_to_aiv": ("a popped tile", "any", "-"),
    "aic_initialize_pipe aiv_initialize_pipe": ("bytes and slots", "-", "-"),
    "reserve_buffer import_peer_buffer": ("a scalar", "INT32", "-"),
    "aiv_shard": ("2-D; the lane's half of the axis", "any", "copies bits"),
    "aic_gather": ("2-D; the halves joined", "any", "copies bits"),
    "syncall": ("workspace of 16 or more cells", "INT32", "-"),
    "sync_set sync_wait": ("event 0 to 13", "-", "-"),
    "set_ffts": ("workspace of 256 or more cells", "INT64", "-"),
}
