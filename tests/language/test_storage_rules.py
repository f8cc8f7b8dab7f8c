# SPDX-License-Identifier: Apache-2.0
"""Names and storage in orchestrations and kernels: outputs under two names, created tensors, scopes, docstrings, hosts."""

import json

import numpy as np
import pytest
from pypto import ir
from pypto.runtime import RunConfig, last_report
from rejections import define

X = np.random.default_rng(53).standard_normal((16, 64)).astype(np.float32)
KERNELS = """
@pl.jit.incore
def twice(a: pl.Tensor[[16, 64], pl.FP32], b: pl.Out[pl.Tensor[[16, 64], pl.FP32]]):
    b = pl.store(pl.mul(pl.load(a, [0, 0], [16, 64]), 2.0), [0, 0], b)
    return b


@pl.jit.incore
def more(a: pl.InOut[pl.Tensor[[16, 64], pl.FP32]]):
    a = pl.store(pl.add(pl.load(a, [0, 0], [16, 64]), 1.0), [0, 0], a)
    return a
"""


def run(
    tmp_path,
    body,
    *arrays,
    graph=None,
    parameters="x: pl.Tensor[[16, 64], pl.FP32], o: pl.Out[pl.Tensor[[16, 64], pl.FP32]]",
):
    text = (
        KERNELS
        + f"\n\n@pl.jit\ndef f({parameters}):\n"
        + "\n".join("    " + line for line in body.strip("\n").splitlines())
    )
    define(tmp_path, text)["f"](*arrays, config=RunConfig(platform="a2a3sim", enable_dep_gen=graph is not None))
    if graph:
        last_report().save_task_graph(graph)


def test_an_output_and_its_new_name_are_one_storage(tmp_path):  # L-53, L-159
    o = np.zeros_like(X)
    run(
        tmp_path,
        """
buf = pl.create_tensor([16, 64], dtype=pl.FP32)
y = twice(x, buf)
z = more(y)
o = twice(buf, o)
return o
""",
        X,
        o,
    )
    np.testing.assert_array_equal(o, (X * 2 + 1) * 2)


def test_the_old_name_sees_an_in_place_operation(tmp_path):  # L-53, L-185
    o, p = np.zeros_like(X), np.zeros_like(X)
    run(
        tmp_path,
        """
with pl.at(level=pl.Level.CORE_GROUP):
    t = pl.load(x, [0, 0], [16, 64])
    o2 = pl.store(t, [0, 0], o)
    o3 = pl.store(pl.mul(pl.load(o, [0, 0], [8, 64]), 3.0), [8, 0], o)
    p = pl.store(pl.load(o2, [0, 0], [16, 64]), [0, 0], p)
return o3, p
""",
        X,
        o,
        p,
        parameters="x: pl.Tensor[[16, 64], pl.FP32], o: pl.Out[pl.Tensor[[16, 64], pl.FP32]], p: pl.Out[pl.Tensor[[16, 64], pl.FP32]]",
    )
    want = np.concatenate([X[:8], X[:8] * 3])
    np.testing.assert_array_equal(o, want)
    np.testing.assert_array_equal(p, want)


def test_created_tensors_are_fresh_and_initialised_first(tmp_path):  # L-162, O-501
    o = np.full_like(X, 9)
    run(
        tmp_path,
        """
for i in pl.range(3):
    buf = pl.create_tensor([16, 64], dtype=pl.FP32, init_value=2.5)
    buf = more(buf)
    if i == 2:
        o = twice(buf, o)
return o
""",
        X,
        o,
    )
    np.testing.assert_array_equal(o, np.full_like(X, 7))


def test_docstrings_and_comments_are_ignored(tmp_path):  # L-107
    o, p = np.zeros_like(X), np.zeros_like(X)
    run(
        tmp_path,
        '''
"""What this does."""
# a comment
with pl.at(level=pl.Level.CORE_GROUP):
    """A region with words."""
    # another
    t = pl.load(x, [0, 0], [16, 64])  # trailing
    o = pl.store(t, [0, 0], o)
return o
''',
        X,
        o,
    )
    np.testing.assert_array_equal(o, X)


SCOPES = """
@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def k(self, x: pl.Tensor[[16, 64], pl.FP32], o: pl.Out[pl.Tensor[[16, 64], pl.FP32]]) -> pl.Tensor[[16, 64], pl.FP32]:
        return pl.store(pl.load(x, [0, 0], [16, 64]), [0, 0], o)

    @pl.function(type=pl.FunctionType.Orchestration, auto_scope=AUTO)
    def main(self, x: pl.Tensor[[16, 64], pl.FP32], o: pl.Out[pl.Tensor[[16, 64], pl.FP32]]) -> pl.Tensor[[16, 64], pl.FP32]:
        for i in pl.range(3):
            BODY
        return o
"""


def test_who_places_scopes(tmp_path):  # L-57, L-121
    hand = SCOPES.replace("BODY", "with pl.scope():\n                o = self.k(x, o)")
    o = np.zeros_like(X)
    program = define(tmp_path, hand.replace("AUTO", "False"))["P"]
    ir.compile(program, output_dir=tmp_path / "a", dump_passes=False)(X, o)
    np.testing.assert_array_equal(o, X)
    with pytest.raises(Exception, match=r"requires @pl\.function\(auto_scope=False\)"):
        define(tmp_path, hand.replace("AUTO", "True"))
    plain = SCOPES.replace("BODY", "o = self.k(x, o)")
    for value in ("True", "False"):
        o = np.zeros_like(X)
        ir.compile(define(tmp_path, plain.replace("AUTO", value))["P"], output_dir=tmp_path / value, dump_passes=False)(
            X, o
        )
        np.testing.assert_array_equal(o, X)


@pytest.mark.parametrize("decorator", ["@pl.jit.host", "@pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)"])
def test_host_orchestrators(tmp_path, decorator):  # L-61
    from pypto.ir.distributed_compiled_program import DistributedConfig

    config = RunConfig(platform="a2a3sim", distributed_config=DistributedConfig(device_ids=[0, 1]))
    x, o = np.stack([X, X + 1]), np.zeros((2, 16, 64), np.float32)
    if decorator == "@pl.jit.host":
        text = (
            KERNELS
            + """

@pl.jit
def device(x: pl.Tensor[[16, 64], pl.FP32], o: pl.Out[pl.Tensor[[16, 64], pl.FP32]]):
    o = twice(x, o)
    return o


@pl.jit.host
def host(x: pl.Tensor[[2, 16, 64], pl.FP32], o: pl.Out[pl.Tensor[[2, 16, 64], pl.FP32]]):
    for r in pl.range(pld.world_size()):
        device(x[r], o[r], device=r)
"""
        )
        define(tmp_path, text)["host"](x, o, config=config)
    else:
        text = """
@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def k(self, x: pl.Tensor[[16, 64], pl.FP32], o: pl.Out[pl.Tensor[[16, 64], pl.FP32]]) -> pl.Tensor[[16, 64], pl.FP32]:
        return pl.store(pl.mul(pl.load(x, [0, 0], [16, 64]), 2.0), [0, 0], o)

    @pl.function(type=pl.FunctionType.Orchestration)
    def device(self, x: pl.Tensor[[16, 64], pl.FP32], o: pl.Out[pl.Tensor[[16, 64], pl.FP32]]) -> pl.Tensor[[16, 64], pl.FP32]:
        o = self.k(x, o)
        return o

    @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
    def host(self, x: pl.Tensor[[2, 16, 64], pl.FP32], o: pl.Out[pl.Tensor[[2, 16, 64], pl.FP32]]):
        for r in pl.range(pld.world_size()):
            self.device(x[r], o[r], device=r)
"""
        program = define(tmp_path, text)["P"]
        ir.compile(program, output_dir=tmp_path / "h", dump_passes=False, distributed_config=config.distributed_config)(
            x, o
        )
    np.testing.assert_array_equal(o, 2 * x)


def test_automatic_edges(tmp_path):  # L-159: write then read, read then write, write then write; none between readers
    o, p = np.zeros((2, 16, 64), np.float32), X.copy()
    run(
        tmp_path,
        """
first = pl.reshape(o[0:1], [16, 64])
second = pl.reshape(o[1:2], [16, 64])
first = twice(p, first)
second = twice(p, second)
p = more(p)
second = twice(p, second)
return o, p
""",
        o,
        p,
        parameters="o: pl.Out[pl.Tensor[[2, 16, 64], pl.FP32]], p: pl.InOut[pl.Tensor[[16, 64], pl.FP32]]",
        graph=tmp_path / "deps.json",
    )
    np.testing.assert_array_equal(o[0], 2 * X)
    np.testing.assert_array_equal(o[1], 2 * (X + 1))
    graph = json.loads((tmp_path / "deps.json").read_text())
    edges = {(e["pred"], e["succ"]) for e in graph["edges"]}
    numbers = sorted((t["id"] for t in graph["tasks"]), key=int)
    first, second, writer, last = numbers
    assert {(first, writer), (second, writer), (writer, last), (second, last)} <= edges
    assert (first, second) not in edges


def test_where_a_created_tensor_lives(tmp_path):  # L-186, 02 B-43
    o, p = np.zeros_like(X), np.zeros_like(X)
    run(
        tmp_path,
        """
with pl.at(level=pl.Level.CORE_GROUP):
    out = pl.create_tensor([16, 64], dtype=pl.FP32)
    out[:, :] = pl.mul(x, 3.0)
    local = pl.create_tensor([16, 64], dtype=pl.FP32)
    local[:, :] = pl.add(x, 1.0)
    scratch = pl.create_tensor([16, 64], dtype=pl.FP32)
    scratch = pl.store(pl.load(x, [0, 0], [16, 64]), [0, 0], scratch)
    p[:, :] = pl.add(local, pl.slice(scratch, [16, 64], [0, 0]))
o = twice(out, o)
return o, p
""",
        X,
        o,
        p,
        parameters="x: pl.Tensor[[16, 64], pl.FP32], o: pl.Out[pl.Tensor[[16, 64], pl.FP32]], p: pl.Out[pl.Tensor[[16, 64], pl.FP32]]",
    )
    np.testing.assert_array_equal(o, X * np.float32(3) * 2)
    np.testing.assert_array_equal(p, (X + 1) + X)


def test_a_function_without_a_type_is_opaque(tmp_path):  # L-42
    text = """
@pl.program
class P:
    @pl.function
    def a(self, x: pl.Tensor[[16, 64], pl.FP32], o: pl.Out[pl.Tensor[[16, 64], pl.FP32]]) -> pl.Tensor[[16, 64], pl.FP32]:
        with pl.at(level=pl.Level.CORE_GROUP):
            o = pl.store(pl.load(x, [0, 0], [16, 64]), [0, 0], o)
        return o
"""
    program = define(tmp_path, text)["P"]
    assert [str(f.func_type) for f in program.functions.values()] == [str(ir.FunctionType.Opaque)]
    o = np.zeros_like(X)
    ir.compile(program, output_dir=tmp_path / "o", dump_passes=False)(X, o)
    np.testing.assert_array_equal(o, X)


BIG = """
@pl.jit
def f(x: pl.Tensor[[16, 64], pl.FP32], o: pl.Out[pl.Tensor[[16, 64], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        big = pl.create_tensor([4096, 64], dtype=pl.FP32)
        USE
    return o
"""


def test_scratch_in_global_memory_takes_no_room_on_chip(tmp_path):  # L-186, L-147
    use = "big = pl.store(pl.load(x, [0, 0], [16, 64]), [4080, 0], big)\n        o = pl.store(pl.load(big, [4080, 0], [16, 64]), [0, 0], o)"
    o = np.zeros_like(X)
    define(tmp_path, BIG.replace("USE", use))["f"](X, o, config=RunConfig(platform="a2a3sim"))
    np.testing.assert_array_equal(o, X)
    use = "big[0:16, :] = x\n        o[:, :] = pl.add(big[0:16, :], pl.slice(big, [16, 64], [0, 0]))"
    with pytest.raises(ValueError, match="exceeds platform limit"):
        define(tmp_path, BIG.replace("USE", use))["f"](X, o, config=RunConfig(platform="a2a3sim"))
