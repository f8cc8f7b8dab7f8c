# SPDX-License-Identifier: Apache-2.0
"""Python that kernels do not have: each is refused with what to write instead (04 ERR-4)."""

import pytest
from rejections import kernel

# A statement of a kernel, and what the hint must mention.
IDIOMS = {
    "print(x)": "pl.static_print",
    "for i, r in enumerate(x): pass": "pl.range",
    "o = sorted(x)": "outside the function",
    "o = x ** 2": "pl.mul(x, x)",
    "o = x @ x": "pl.matmul(a, b)",
    "o = -x": "pl.neg",
    "o[...] = x": "':' is all of it",
    "t = x[None]": "pl.reshape",
    "o[0, 0] = 1.0": "pl.write(o, [0, 0], value)",
    "o[x > 0] = 1.0": "pl.gather",
    "x.add(1.0)": "pl.add(x, ...)",
    "if x > 1.0: pass": "pl.read",
    "t = x if pl.read(x, [0, 0]) > 1 else o": "'if' and 'else' as statements",
    "t = (u := pl.exp(x))": "in a statement of its own",
    "t = lambda a: a": "@pl.inline",
    "t = {'a': x}": "one name per value",
    "t = f'{x}'": "pl.static_print",
    "assert pl.read(x, [0, 0]) > 0": "pl.static_assert",
    "del x": "leave it out",
    "raise ValueError": "pl.static_assert",
    "import math": "outside the function",
    "from math import pi": "outside the function",
    "global G": "leave it out",
    "def f(a): return a": "@pl.inline",
    "class A: pass": "outside",
    "yield x": "pl.yield_",
    "try: pass\nexcept Exception: pass": "leave out 'try'",
    "match 3:\n    case 3: pass": "'if' and 'elif'",
    "a = b = pl.exp(x)": "one assignment per name",
    "if 0 < pl.read(x, [0, 0]) < 5: pass": "(a < b) and (b < c)",
    "t = pl.slice(x, [4, 4], [*x])": "spread with *",
}


@pytest.mark.parametrize("statement", IDIOMS)
def test_idiom(tmp_path, statement):
    with pytest.raises(Exception) as caught:
        kernel(tmp_path, statement)
    text = str(caught.value)
    assert IDIOMS[statement] in text, text
    assert "= help: " in text and "case_" in text and "^" in text
