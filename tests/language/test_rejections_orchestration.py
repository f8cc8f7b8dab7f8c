# SPDX-License-Identifier: Apache-2.0
"""Programs that break a rule in the control plane: regions, scopes, tasks, calls."""

import pytest
from pypto.language.parser import diagnostics as d
from rejections import assert_points_into, define, orchestration

AT = "with pl.at(level=pl.Level.CORE_GROUP{}):\n    t = pl.load(x, [0, 0], [64, 64])\n    o = pl.store(t, [0, 0], o)"
SPMD = "with pl.spmd(4{}):\n    i = pl.get_block_idx()\n    o = pl.store(pl.load(x, [i * 16, 0], [16, 64]), [i * 16, 0], o)"

CASES = [
    # L-108
    ("with pl.scope(), pl.manual_scope():\n    pass", d.ParserSyntaxError, ["Only single context manager supported"]),
    ("with open('f'):\n    pass", d.UnsupportedFeatureError, ["Unsupported context manager"]),
    ("with pl.manual_scope() as s:\n    pass", d.ParserSyntaxError, ["the `as` clause only applies to"]),
    (
        "with pl.at(level=pl.Level.CORE_GROUP) as (a, b):\n    pass",
        d.ParserSyntaxError,
        ["must be a plain variable name"],
    ),
    # L-110
    ("with pl.at():\n    pass", d.ParserSyntaxError, ["requires a level argument"]),
    (
        "with pl.at(pl.Level.CORE_GROUP, None, 3):\n    pass",
        d.ParserSyntaxError,
        ["takes at most 2 positional arguments"],
    ),
    (
        "with pl.at(pl.Level.CORE_GROUP, level=pl.Level.CORE_GROUP):\n    pass",
        d.ParserSyntaxError,
        ["got multiple values for argument"],
    ),
    (AT.format(", foo=1"), d.ParserSyntaxError, ["Unknown keyword argument 'foo' in pl.at()"]),
    (AT.format(", **{}"), d.ParserSyntaxError, []),
    (AT.format(", optimizations=(1,)"), d.ParserSyntaxError, ["must be a list literal"]),
    (AT.format(", optimizations=[pl.range]"), d.ParserSyntaxError, ["Unsupported entry in pl.at(optimizations=[...])"]),
    (
        AT.format(", optimizations=[pl.split(pl.SplitMode.UP_DOWN), pl.split(pl.SplitMode.UP_DOWN)]"),
        d.ParserSyntaxError,
        ["Duplicate 'pl.split(...)'"],
    ),
    (
        AT.format(", optimizations=[pl.cross_core_slot(slot_num=2), pl.cross_core_slot(slot_num=2)]"),
        d.ParserSyntaxError,
        ["Duplicate 'pl.cross_core_slot(...)'"],
    ),
    (
        AT.format(", optimizations=[pl.split(pl.SplitMode.UP_DOWN, slot_num=2), pl.cross_core_slot(slot_num=2)]"),
        d.ParserSyntaxError,
        ["sets the cross-core slot count twice"],
    ),
    (AT.format(", optimizations=[pl.split()]"), d.ParserSyntaxError, ["takes exactly 1 positional argument"]),
    (AT.format(", optimizations=[pl.cross_core_slot(2)]"), d.ParserSyntaxError, ["takes no positional arguments"]),
    (
        AT.format(", optimizations=[pl.cross_core_slot()]"),
        d.ParserSyntaxError,
        ["requires the slot_num= keyword argument"],
    ),
    (
        AT.format(", optimizations=[pl.cross_core_slot(slot_num=n)]"),
        d.ParserSyntaxError,
        ["must be an integer literal"],
    ),
    (AT.format(", optimizations=[pl.cross_core_slot(slot_num=0)]"), d.ParserSyntaxError, ["must be positive"]),
    (
        "with pl.at(level=pl.Level.CHIP, optimizations=[]):\n    pass",
        d.ParserSyntaxError,
        ["only supported with level=pl.Level.CORE_GROUP"],
    ),
    (AT.format(", role=pl.Role.Orchestrator"), d.ParserSyntaxError, ["role= is not supported"]),
    (AT.format(", name_hint=1"), d.ParserSyntaxError, ["must be a string literal"]),
    (AT.format(", name_hint='a b'"), d.ParserSyntaxError, ["must be a valid non-keyword identifier"]),
    (AT.format(", name_hint='for'"), d.ParserSyntaxError, ["must be a valid non-keyword identifier"]),
    (AT.format(", allow_early_resolve=n"), d.ParserSyntaxError, ["must be a boolean literal"]),
    (AT.format(", no_dep_args=[x[0]]"), d.ParserTypeError, ["bare tensor names"]),
    (AT.format(", no_dep_args=[qq]"), d.ParserTypeError, ["unknown name"]),
    (AT.format(", no_dep_args=[n]"), d.ParserTypeError, ["not a tensor"]),
    (AT.format(", no_dep_args=[x, x]"), d.ParserTypeError, ["more than once"]),
    # L-111
    (AT.format("") + "\nu = pl.exp(t)", (d.ParserTypeError, ValueError), ["'t'"]),
    (
        "with pl.at(level=pl.Level.CORE_GROUP, name_hint='rd'):\n    s = pl.read(idx, [0])\n    o[:] = pl.add(x, 1.0)\n"
        "for i in pl.range(s):\n    pass",
        d.ParserTypeError,
        ["'s'", "rd"],
    ),
    # L-112
    (
        "with pl.at(level=pl.Level.CORE_GROUP):\n    with pl.at(level=pl.Level.CORE_GROUP):\n        pass",
        (d.ParserSyntaxError, ValueError),
        ["Nested InCore"],
    ),
    ("with pl.at(level=pl.Level.CORE_GROUP):\n    with pl.manual_scope():\n        pass", d.ParserSyntaxError, []),
    ("with pl.at(level=pl.Level.CORE_GROUP):\n    o2, t = pl.submit(self.k, x, o)", d.ParserSyntaxError, []),
    # L-113
    ("t = pl.add(x, 1.0)", (ValueError, d.ParserError), ["Misplaced tensor op", "should be inside InCore block"]),
    ("t = x + 1.0", (ValueError, d.ParserError), ["Misplaced tensor op", "should be inside InCore block"]),
    ("t = pl.load(x, [0, 0], [64, 64])", (ValueError, d.ParserError), ["Misplaced", "load"]),
    ("t = pl.full([64, 64], dtype=pl.FP32, value=1.0)", (ValueError, d.ParserError), ["Misplaced tensor op"]),
    # L-115
    (
        "with pl.cluster():\n    with pl.spmd(4) as tid:\n        i = pl.get_block_idx()",
        d.ParserSyntaxError,
        ["cannot capture a TaskId when nested inside"],
    ),
    (
        "with pl.cluster():\n    for i in pl.spmd(4, allow_early_resolve=True):\n        pass",
        d.ParserSyntaxError,
        ["cannot be nested inside"],
    ),
    (
        "with pl.cluster():\n    o, t = pl.submit(self.k, x, o, deps=[])",
        d.ParserSyntaxError,
        ["cannot carry per-task dispatch metadata"],
    ),
    # L-117, L-118
    ("for i in pl.spmd(0):\n    pass", d.ParserSyntaxError, ["must be a positive integer"]),
    ("for i in pl.spmd(x):\n    pass", d.ParserSyntaxError, ["must be an integer expression"]),
    ("for i in pl.spmd():\n    pass", d.ParserSyntaxError, ["requires core_num"]),
    ("for i in pl.spmd(1, 2):\n    pass", d.ParserSyntaxError, ["at most one positional argument"]),
    ("for i in pl.spmd(1, core_num=2):\n    pass", d.ParserSyntaxError, ["multiple values for argument 'core_num'"]),
    ("for i in pl.spmd(2, foo=2):\n    pass", d.ParserSyntaxError, ["got unexpected keyword argument"]),
    ("for i in pl.spmd(2, **{}):\n    pass", d.ParserSyntaxError, ["does not accept **kwargs"]),
    ("for i in pl.spmd(2, init_values=(n,)):\n    pass", d.ParserSyntaxError, ["does not accept 'init_values='"]),
    ("for i in pl.spmd(2, deps=[]):\n    pass", d.ParserSyntaxError, ["does not accept 'deps=' here"]),
    ("for i, (a,) in pl.spmd(2):\n    pass", d.ParserSyntaxError, ["single loop variable"]),
    (SPMD.format(", sync_start=n"), d.ParserSyntaxError, ["must be a boolean literal"]),
    (
        "with pl.spmd(4):\n    o = pl.store(pl.load(x, [0, 0], [16, 64]), [0, 0], o)",
        d.ParserSyntaxError,
        ["neither reads the per-block index"],
    ),
    ("with pl.spmd(4):\n    o = self.k(x, o)\n    o = self.k(x, o)", d.ParserSyntaxError, ["launches 2 kernels"]),
    (SPMD.format(", optimizations=[3]"), d.ParserSyntaxError, ["pl.spmd(optimizations"]),
    (
        "with pl.spmd(4, optimizations=[pl.split(pl.SplitMode.UP_DOWN)]):\n    with pl.at(level=pl.Level.CORE_GROUP, "
        "optimizations=[pl.split(pl.SplitMode.UP_DOWN)]):\n        o[:] = pl.add(x, 1.0)",
        d.ParserSyntaxError,
        ["`optimizations=` is specified twice"],
    ),
    # L-121
    ("with pl.scope():\n    pass", d.ParserSyntaxError, ["requires @pl.function(auto_scope=False)"]),
    ("with pl.scope(pl.ScopeMode.MANUAL):\n    pass", d.ParserSyntaxError, ["takes only a 'mode=' keyword"]),
    ("with pl.manual_scope(1):\n    pass", d.ParserSyntaxError, ["does not accept arguments"]),
    (
        "with pl.manual_scope():\n    with pl.manual_scope():\n        pass",
        d.ParserSyntaxError,
        ["may not be nested inside a manual scope"],
    ),
    ("for i in pl.split_aiv(2, mode=pl.SplitMode.NONE):\n    pass", d.ParserSyntaxError, ["pl.split_aiv"]),
    # L-130
    ("o, t = pl.submit(k, x, o)", d.ParserSyntaxError, ["first argument must be a `self.<kernel>` method reference"]),
    ("o, t = pl.submit()", d.ParserSyntaxError, ["requires the kernel as its first argument"]),
    ("o, t, u = pl.submit(self.k, x, o)", d.ParserSyntaxError, ["must be unpacked as exactly 2 targets"]),
    ("o, t[0] = pl.submit(self.k, x, o)", d.ParserSyntaxError, ["must contain plain variable names only"]),
    ("(a, b), t = pl.submit(self.k, x, o)", d.ParserTypeError, ["unpacks 2 result value(s) but kernel 'k' returns 1"]),
    ("o, t = pl.spmd_submit(self.k, x, o)", d.ParserSyntaxError, ["requires the core_num keyword argument"]),
    ("o, t = pl.submit(self.k, x, o, allow_early_resolve=n)", d.ParserSyntaxError, ["must be a boolean literal"]),
    ("pl.submit(self.k, x, o)", d.ParserSyntaxError, ["must be unpacked as a 2-tuple"]),
    # L-131
    ("o, t = pl.submit(self.k, x, o)\na = t + 1", d.ParserTypeError, ["handle"]),
    ("o, t = pl.submit(self.k, x, o)\nif t == None:\n    pass", d.ParserTypeError, ["handle"]),
    # L-133
    ("o, t = pl.submit(self.k, x, o, deps=[n])", d.ParserTypeError, ["entries must be a TaskId variable"]),
    (
        "tids = pl.array.create(4, pl.TASK_ID)\no, t = pl.submit(self.k, x, o, deps=[tids, tids[0]])",
        d.ParserTypeError,
        ["cannot mix"],
    ),
    (
        "tids = pl.array.create(4, pl.TASK_ID)\no, t = pl.submit(self.k, x, o, deps=[tids[j] for j in pl.range(4)])",
        d.ParserError,
        ["DSL loop"],
    ),
    (
        "tids = pl.array.create(4, pl.TASK_ID)\no, t = pl.submit(self.k, x, o, deps=[tids[j] for j in range(n)])",
        d.ParserError,
        ["IR variable"],
    ),
    (
        "tids = pl.array.create(4, pl.TASK_ID)\no, t = pl.submit(self.k, x, o, deps=[tids[j] for j in range(2) for k in "
        "range(2)])",
        d.ParserError,
        ["single `for` clause"],
    ),
    ("o = self.k(x, o, deps=[])", d.ParserTypeError, ["pl.submit"]),
    # L-135
    (
        "t = None\nfor i in pl.parallel(n):\n    o, t = pl.submit(self.k, x, o)\no, u = pl.submit(self.k, x, o, deps=[t])",
        d.ParserError,
        ["array"],
    ),
    # L-136
    ("o, t = pl.submit(self.k, x, o, predicate=n)", d.ParserSyntaxError, ["must be a single comparison"]),
    ("o, t = pl.submit(self.k, x, o, predicate=(n > 1))", d.ParserSyntaxError, ["must compare one tensor element"]),
    (
        "o, t = pl.submit(self.k, x, o, predicate=(x[0, 0] > 1))",
        d.ParserTypeError,
        ["must be a signed 8/16/32/64-bit integer tensor"],
    ),
    ("o, t = pl.submit(self.k, x, o, predicate=(idx[0, 0] > 1))", d.ParserTypeError, ["predicate needs 1 index(es)"]),
    ("o, t = pl.submit(self.k, x, o, predicate=(idx[-1] > 1))", d.ParserTypeError, ["must be non-negative"]),
    (
        "tids = pl.array.create(4, pl.INT32)\no, t = pl.submit(self.k, x, o, predicate=(tids[0] > 1))",
        d.ParserTypeError,
        ["predicate operand must be a tensor"],
    ),
    # L-137
    ("t = pl.system.task_dummy()", d.ParserSyntaxError, ["deps"]),
    ("t = pl.system.task_dummy([])", d.ParserSyntaxError, ["positional"]),
    # L-139
    ("pl.dump_tag(x, o)", d.ParserSyntaxError, ["takes exactly one positional argument"]),
    ("pl.dump_tag(x[0:8, :])", d.ParserSyntaxError, ["must be a bare variable name"]),
    ("pl.dump_tag(qq)", d.ParserError, ["is not defined"]),
    ("pl.dump_tag(n)", d.ParserError, ["is not a tensor"]),
    ("o, t = pl.submit(self.k, x, o, dumps=[idx])", d.ParserTypeError, ["is not an argument of this submit"]),
    # L-47
    ("o = self.kk(x, o)", d.UndefinedVariableError, ["Function 'kk' not defined in program"]),
    ("o = self.k(x)", d.ParserTypeError, ["Function 'k' expects 2 argument(s), got 1"]),
    ("o = self.k(x, o, x)", d.ParserTypeError, ["Function 'k' expects 2 argument(s), got 3"]),
    ("o = self.k(x, o, foo=1)", d.ParserTypeError, ["does not accept keyword argument"]),
    ("o = self.k(x, n)", (d.ParserTypeError, TypeError), ["'o'"]),
    ("o = self.k(idx, o)", (d.ParserTypeError, TypeError), ["'x'"]),
    ("o = self.k(x, o, device=0)", d.ParserTypeError, ["'device'"]),
    ("o = self.main(x, idx, 1, o)", (d.ParserTypeError, ValueError), []),
    # L-82
    ("a, b, c = self.k2(x, o, o)", d.ParserTypeError, ["Cannot unpack 2 value(s) into 3"]),
    # L-99
    ("s = 0\nfor i in pl.parallel(4):\n    s = s + 1", d.ParserTypeError, ["'s'", "pl.parallel"]),
    # L-52
    ("with pl.manual_scope():\n    return o", d.UnsupportedFeatureError, ["pl.manual_scope"]),
    ("if n > 1:\n    return o\nelse:\n    return idx", d.ParserTypeError, ["return"]),
    # L-54
    ("o = pl.create_tensor([64, 64], dtype=pl.FP32)", d.ParserError, ["cannot be reassigned via"]),
    # 03 X-2
    ("b = pld.alloc_window_buffer(64)", d.InvalidOperationError, ["HOST"]),
]


@pytest.mark.parametrize("body,cls,fragments", CASES, ids=[c[0][:70] for c in CASES])
def test_rejected(tmp_path, body, cls, fragments):
    with pytest.raises(cls) as info:
        orchestration(tmp_path, body)
    for fragment in fragments:
        assert fragment in str(info.value), str(info.value)
    assert_points_into(info.value, tmp_path, body)


def test_conditional_return_needs_an_else(tmp_path):  # L-52
    with pytest.raises(d.ParserError):
        orchestration(tmp_path, "if n > 1:\n    return o", tail="pass")


def test_return_annotation_must_match(tmp_path):  # L-51
    with pytest.raises(d.ParserTypeError, match="dtype"):
        orchestration(tmp_path, "pass", tail="return idx")
    with pytest.raises(d.ParserTypeError):
        orchestration(tmp_path, "pass", tail="return o, x")


def test_manual_edges_by_attribute_are_rejected(tmp_path):  # L-133, L-140
    with pytest.raises(d.ParserError, match="manual_dep_edges"):
        orchestration(tmp_path, "o = self.k(x, o, attrs={'manual_dep_edges': []})")
    with pytest.raises(d.ParserError):
        orchestration(tmp_path, "o = self.k(x, o, attrs={'arg_directions': [pl.adir.input]})")
    orchestration(tmp_path, "o = self.k(x, o, attrs={'arg_directions': [pl.adir.input, pl.adir.output_existing]})")


def test_predicate_operand_needs_its_producer(tmp_path):  # L-136
    text = """
@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def flag(self, f: pl.Out[pl.Tensor[[8], pl.INT32]]) -> pl.Tensor[[8], pl.INT32]:
        f = pl.write(f, [0], 1)
        return f

    @pl.function(type=pl.FunctionType.InCore)
    def k(self, x: pl.Tensor[[64, 64], pl.FP32], o: pl.Out[pl.Tensor[[64, 64], pl.FP32]]
          ) -> pl.Tensor[[64, 64], pl.FP32]:
        return pl.store(pl.load(x, [0, 0], [64, 64]), [0, 0], o)

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: pl.Tensor[[64, 64], pl.FP32], f: pl.InOut[pl.Tensor[[8], pl.INT32]],
             o: pl.Out[pl.Tensor[[64, 64], pl.FP32]]) -> pl.Tensor[[64, 64], pl.FP32]:
        f, t = pl.submit(self.flag, f)
        o, _ = pl.submit(self.k, x, o, deps=[{}], predicate=(f[0] > 0))
        return o
"""
    define(tmp_path, text.format("t"))
    with pytest.raises(d.ParserSyntaxError, match="is not in deps="):
        define(tmp_path, text.format(""))


CLASSES = [
    ("class P:\n    x = 1", d.ParserSyntaxError, "contains no @pl.function"),
    (
        "class P:\n    @pl.function(type=pl.FunctionType.Kernel)\n    def k(self):\n        pass",
        (d.ParserSyntaxError, AttributeError),
        "",
    ),
    (
        "class P:\n    @pl.function(level=pl.Level.HOST, role=pl.Role.SubWorker)\n    def k(self, x: pl.Tensor[[4], pl.FP32]):\n"
        "        pass",
        d.ParserSyntaxError,
        "must not declare 'self'",
    ),
    (
        "class P:\n    @pl.function\n    def k(self, x: pl.Tensor[[4], pl.FP32]):\n        y = x\n        pl.func_attr({'a': 1})",
        d.ParserSyntaxError,
        "must appear before every other statement",
    ),
    (
        "class P:\n    @pl.function\n    def k(self, x: pl.Tensor[[4], pl.FP32]):\n        pl.func_attr(1)",
        d.ParserSyntaxError,
        "takes exactly one positional dict argument",
    ),
    (
        "class P:\n    @pl.function\n    def k(self, x: pl.Tensor[[4], pl.FP32]):\n        pl.func_attr({'a': 1, 'a': 2})",
        d.ParserSyntaxError,
        "uplicate",
    ),
    (
        "class P:\n    @pl.function\n    def k(self, x: pl.Tensor[[4], pl.FP32]):\n        pl.func_attr({1: 2})",
        d.ParserSyntaxError,
        "string",
    ),
    (
        "class P:\n    @pl.function\n    def k(self, x: pl.Tensor[[4], pl.FP32]):\n        pl.func_attr({'auto_scope': False})",
        d.ParserSyntaxError,
        "cannot be set with",
    ),
]


@pytest.mark.parametrize("text,cls,fragment", CLASSES)
def test_class_rejected(tmp_path, text, cls, fragment):  # L-42, L-43, L-56, L-62
    with pytest.raises(cls) as info:
        define(tmp_path, "@pl.program\n" + text)
    assert fragment in str(info.value)


def test_cycles_are_named(tmp_path):  # L-59
    with pytest.raises(ValueError, match="Cycle detected"):
        define(
            tmp_path,
            """
@pl.inline
def ping(x):
    pong(x)

@pl.inline
def pong(x):
    ping(x)

@pl.program
class P:
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: pl.Tensor[[4], pl.FP32]):
        ping(x)
""",
        )


def test_inline_argument_count(tmp_path):  # L-59
    text = """
@pl.inline
def h(a, b):
    pl.write(a, [0], b)

@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def k(self, x: pl.InOut[pl.Tensor[[4], pl.FP32]]):
        {}
"""
    define(tmp_path, text.format("h(x, 1.0)"))
    with pytest.raises(d.ParserError, match="Inline function 'h' expects 2 argument"):
        define(tmp_path, text.format("h(x)"))
    with pytest.raises(d.ParserError, match="has no return value"):
        define(tmp_path, text.format("y = h(x, 1.0)"))
