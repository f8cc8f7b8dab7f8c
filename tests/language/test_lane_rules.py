# SPDX-License-Identifier: Apache-2.0
"""What may stand in and outside `pl.split_aiv` bodies, and how values cross their edge (01 L-124, L-125, L-127)."""

import importlib.util
import textwrap

import pytest

HEAD = """\
import pypto.language as pl


@pl.jit
def k(
    a: pl.Tensor[[32, 64], pl.FP32], b: pl.Tensor[[64, 32], pl.FP32], o: pl.Out[pl.Tensor[[32, 32], pl.FP32]]
):
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="lanes"):
"""
TILES = """
ta = pl.load(a, [0, 0], [32, 64])
tb = pl.load(b, [0, 0], [64, 32])
c = pl.matmul(ta, tb)
"""
TENSORS = """
ta = pl.slice(a, [32, 64], [0, 0])
tb = pl.slice(b, [64, 32], [0, 0])
c = pl.matmul(ta, tb)
"""
# body after the product `c`; fragments; text of the line at fault
REFUSED = {
    "vector_outside": (
        "for lane in pl.split_aiv(2, mode=pl.SplitMode.NONE):\n    v = pl.exp(pl.aiv_shard(c))\n    pl.assemble(o, v, [0, 0])"
        "\nd = pl.exp(v)",
        ["'pl.exp' sits outside every pl.split_aiv region", "mode=pl.SplitMode.NONE"],
        "d = pl.exp(v)",
    ),
    "cube_inside": (
        "for lane in pl.split_aiv(2, mode=pl.SplitMode.NONE):\n    v = pl.exp(pl.aiv_shard(c))\n    w = pl.matmul(ta, tb)",
        ["cube op 'pl.matmul' inside a pl.split_aiv region"],
        "w = pl.matmul(ta, tb)",
    ),
    "unnamed_to_the_lanes": (
        "for lane in pl.split_aiv(2, mode=pl.SplitMode.UP_DOWN):\n    v = pl.exp(c)",
        ["'c' is produced on the CUBE lane", "pl.aiv_shard(c)", "pl.aiv_shard(x)"],
        "v = pl.exp(c)",
    ),
    "unnamed_to_the_cube": (
        "for lane in pl.split_aiv(2, mode=pl.SplitMode.NONE):\n    v = pl.exp(pl.aiv_shard(c))\nd = pl.matmul(v, c)",
        ["'v' is defined inside a pl.split_aiv region", "pl.aic_gather(v)"],
        "d = pl.matmul(v, c)",
    ),
    "reduced_over_rows": (
        "for lane in pl.split_aiv(2, mode=pl.SplitMode.UP_DOWN):\n    h = pl.mul(pl.aiv_shard(c), 2.0)\n    v = pl.col_sum(h)",
        ["'pl.col_sum' reduces over the split axis"],
        "v = pl.col_sum(h)",
    ),
    "reduced_over_columns": (
        "for lane in pl.split_aiv(2, mode=pl.SplitMode.LEFT_RIGHT):\n    h = pl.aiv_shard(c)\n    v = pl.row_max(hTMP)",
        ["'pl.row_max' reduces over the split axis"],
        "v = pl.row_max(hTMP)",
    ),
    "shard_of_a_vector_value": (
        "for lane in pl.split_aiv(2, mode=pl.SplitMode.NONE):\n    v = pl.exp(pl.aiv_shard(c))\n    w = pl.aiv_shard(v)",
        ["pl.aiv_shard", "(Acc)", "'v' is in Vec"],
        "w = pl.aiv_shard(v)",
    ),
    "gather_of_a_cube_value": (
        "for lane in pl.split_aiv(2, mode=pl.SplitMode.NONE):\n    w = pl.aic_gather(c)",
        ["pl.aic_gather", "(Vec)", "'c' is in Acc"],
        "w = pl.aic_gather(c)",
    ),
}
ACCEPTED = {
    "shared_rows_reduced_along_columns": "for lane in pl.split_aiv(2, mode=pl.SplitMode.UP_DOWN):\n"
    "    h = pl.aiv_shard(c)\n    v = pl.row_expand_sub(h, pl.row_max(hTMP))\n    pl.assemble(o, v, [lane * 16, 0])",
    "second_loop_uses_what_the_first_made": "for lane in pl.split_aiv(2, mode=pl.SplitMode.UP_DOWN):\n"
    "    v = pl.exp(pl.aiv_shard(c))\nfor lane in pl.split_aiv(2, mode=pl.SplitMode.UP_DOWN):\n"
    "    pl.assemble(o, pl.mul(v, 2.0), [lane * 16, 0])",
    "gathered_and_multiplied_again": "for lane in pl.split_aiv(2, mode=pl.SplitMode.UP_DOWN):\n"
    "    g = pl.aic_gather(pl.exp(pl.aiv_shard(c)))\nd = pl.matmul(g, c)\npl.assemble(o, d, [0, 0])",
}


def work(text, product):
    return text.replace("TMP", ", h" if product is TILES else "")


def kernel(tmp_path, product, body):
    path = tmp_path / "lanes_kernel.py"
    # At tile level a row reduction takes a tile to work in.
    body = work(body, product)
    path.write_text(HEAD + textwrap.indent(product + body, " " * 8) + "\n    return o\n")
    spec = importlib.util.spec_from_file_location("lanes_kernel", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.k, path


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("product", [TILES, TENSORS], ids=["tiles", "tensors"])
@pytest.mark.parametrize("name", REFUSED)
def test_refused(tmp_path, name, product):  # L-124, L-125, L-127
    body, fragments, at = REFUSED[name]
    k, path = kernel(tmp_path, product, body)
    with pytest.raises(ValueError) as caught:
        k.compile()
    text = str(caught.value)
    for fragment in fragments:
        assert fragment in text
    line = next(n for n, t in enumerate(path.read_text().splitlines(), 1) if t.strip() == work(at, product))
    assert f"{path.name}:{line}:" in text
    assert "lanes" in text  # the kernel


@pytest.mark.parametrize("product", [TILES, TENSORS], ids=["tiles", "tensors"])
@pytest.mark.parametrize("name", ACCEPTED)
def test_accepted(tmp_path, name, product):  # L-125, L-127
    k, _path = kernel(tmp_path, product, ACCEPTED[name])
    assert k.compile() is not None


@pytest.mark.parametrize("valid,refused", [(13, True), (16, False), (15, False), (8, False), (5, False)])
def test_divided_kernel(tmp_path, valid, refused):  # L-127, L-129; 04 TXT-6
    """A product of which `valid` of 16 rows count, added to 16 loaded rows: the cut lies at row 8."""
    path = tmp_path / "divided.py"
    path.write_text(
        textwrap.dedent(f"""\
        import pypto.language as pl


        @pl.jit
        def k(
            a: pl.Tensor[[16, 64], pl.FP32], b: pl.Tensor[[64, 32], pl.FP32], r: pl.Tensor[[16, 32], pl.FP32],
            o: pl.Out[pl.Tensor[[16, 32], pl.FP32]],
        ):
            with pl.at(level=pl.Level.CORE_GROUP, optimizations=[pl.split(pl.SplitMode.UP_DOWN)]):
                c = pl.matmul(pl.load(a, [0, 0], [16, 64]), pl.load(b, [0, 0], [64, 32]))
                v = pl.set_validshape(c, {valid}, 32)
                o = pl.store(pl.add(v, pl.load(r, [0, 0], [16, 32])), [0, 0], o)
            return o
        """)
    )
    spec = importlib.util.spec_from_file_location("divided", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    if not refused:
        assert module.k.compile() is not None
        return
    with pytest.raises(ValueError) as caught:
        module.k.lower()
    for fragment in (
        "leaves the two AIV lanes 8 and 5 cells",
        "independently split value",
        "pl.tile.set_validshape",
        "16 / 15",
    ):
        assert fragment in str(caught.value)
