# SPDX-License-Identifier: Apache-2.0
"""Standstills that several rows of 03 section 9.4 explain: the most specific is told, with every blocked wait."""

import pytest
from pypto import DeadlockError
from pypto.runtime import RunConfig, SimOptions
from rows import COPY, arrays, compile_for, line_of, text_of

ADD = "1, op=pld.NotifyOp.AtomicAdd)"
TWO_SIGNALS = {"data_shape": "[4, 1]", "data_dtype": "pl.INT32"}

# What is told, what would fit too, pieces, blocked waits as (rank, cell, seen, needed).
CASES = {
    # The value of an Eq wait went by (X-48); a row that nobody waits for was notified as well (X-47).
    "X-48 before X-47": (
        "X-48",
        {
            "kernel": f"pld.system.notify(signal, (me + 1) % n, [3, 0], {ADD}\n"
            f"for i in pl.range(2):\n    pld.system.notify(signal, (me + 1) % n, [0, 0], {ADD}\n"
            f"pld.system.wait(signal, [0, 0], 1, cmp=pld.WaitCmp.Eq)  # <- here\n{COPY}"
        },
        [(r, [0, 0], 2, 1) for r in range(3)],
    ),
    # Rank 1 notified rank 2 instead of rank 0 (X-59); rank 0 was notified in another row (X-47).
    "X-59 before X-47": (
        "X-59",
        {
            "kernel": f"if me == 1:\n    pld.system.notify(signal, 2, [0, 0], {ADD}\n"
            f"if me == 2:\n    pld.system.notify(signal, 0, [1, 0], {ADD}\n"
            f"if me == 0:\n    pld.system.wait(signal, [0, 0], 1, cmp=pld.WaitCmp.Ge)  # <- here\n{COPY}"
        },
        [(0, [0, 0], 0, 1)],
    ),
    # Rank 0 waits for the wrong row (X-47), so it is absent from the barrier of the others (X-50).
    "X-47 before X-50": (
        "X-47",
        {
            **TWO_SIGNALS,
            "kernel": f"pld.system.notify(data, 0, [me, 0], {ADD}\n"
            "if me == 0:\n    pld.system.wait(data, [3, 0], 1, cmp=pld.WaitCmp.Ge)  # <- here\n"
            f"signal = pld.tensor.barrier(signal)\n{COPY}",
        },
        [(0, [3, 0], 0, 1)],
    ),
    # Rank 0 waits for more than comes (X-46), so it is absent from the barrier of the others (X-50).
    "X-50 before X-46": (
        "X-50",
        {
            **TWO_SIGNALS,
            "kernel": f"pld.system.notify(data, 0, [0, 0], {ADD}\n"
            "if me == 0:\n    pld.system.wait(data, [0, 0], 4, cmp=pld.WaitCmp.Ge)\n"
            f"signal = pld.tensor.barrier(signal)  # <- here\n{COPY}",
        },
        [(0, [0, 0], 3, 4)],
    ),
    # Nothing more specific fits: one arrival too few.
    "X-46": (
        "X-46",
        {
            "kernel": f"pld.system.notify(signal, 0, [0, 0], {ADD}\n"
            f"if me == 0:\n    pld.system.wait(signal, [0, 0], 4, cmp=pld.WaitCmp.Ge)  # <- here\n{COPY}"
        },
        [(0, [0, 0], 3, 4)],
    ),
}


@pytest.mark.filterwarnings("ignore:.*X-33")
@pytest.mark.parametrize(
    "sim", [{}, {"checks": "strict"}, {"checks": "off"}, {"schedule": "explore", "seed": 5}], ids=str
)
@pytest.mark.parametrize("case", CASES)
def test_precedence(case, sim, load_source):  # 03 X-75
    id, pieces, blocked = CASES[case]
    text = text_of(**pieces)
    x, y = arrays(3)
    compiled, _ = compile_for(load_source(text).program, (x, y), 3)
    with pytest.raises(DeadlockError, match="deadlock") as caught:
        compiled(x, y, config=RunConfig(sim=SimOptions(**sim)))
    d = caught.value.diagnostic
    assert d.id == id and f".py:{line_of(text)}:" in str(caught.value), str(caught.value)
    waits = [(w.rank, list(w.cell), w.seen, w.needed) for w in d.waits if w.line is not None]
    for wait in blocked:  # the data of X-46, whatever explains it
        assert wait in waits, waits
