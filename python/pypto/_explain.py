# SPDX-License-Identifier: Apache-2.0
"""What each diagnostic means: `pypto explain <id>`."""

from __future__ import annotations

import difflib
import textwrap
from functools import lru_cache
from pathlib import Path

# id -> (wrong, right)
EXAMPLES: dict[str, tuple[str, str]] = {
    "X-7": (
        "for r in pl.range(pld.world_size()):\n    per_rank(x[r], y[r], box)",
        "for r in pl.range(pld.world_size()):\n    per_rank(x[r], y[r], box, device=r)",
    ),
    "X-9": (
        "@pl.jit.host\ndef host(x, y):\n    kernel(x, y)            # a @pl.jit.incore function",
        "@pl.jit\ndef per_rank(x, y):\n    return kernel(x, y)\n\n"
        "@pl.jit.host\ndef host(x, y):\n    per_rank(x, y, device=0)",
    ),
    "X-20": (
        "peer = pld.rank(ctx) + 1",
        "peer = (pld.rank(ctx) + 1) % pld.nranks(ctx)",
    ),
    "X-40": (
        "box = pl.store(own, [0, 0], box)\n"
        "theirs = pld.tile.remote_load(box, peer=left, offsets=[0, 0], shape=[1, 64])",
        "box = pl.store(own, [0, 0], box)\nsig = pld.tensor.barrier(sig)\n"
        "theirs = pld.tile.remote_load(box, peer=left, offsets=[0, 0], shape=[1, 64])",
    ),
    "X-46": (
        "pld.system.notify(sig, peer=right, offsets=[me, 0], value=1, op=pld.NotifyOp.AtomicAdd)\n"
        "pld.system.wait(sig, offsets=[right, 0], expected=1, cmp=pld.WaitCmp.Ge)   # nobody raises this row here",
        "pld.system.notify(sig, peer=right, offsets=[me, 0], value=1, op=pld.NotifyOp.AtomicAdd)\n"
        "pld.system.wait(sig, offsets=[left, 0], expected=1, cmp=pld.WaitCmp.Ge)",
    ),
    "X-54": (
        "t = pld.tile.remote_load(box, peer=p, offsets=[0, 32], shape=[1, 64])   # box has 64 columns",
        "t = pld.tile.remote_load(box, peer=p, offsets=[0, 0], shape=[1, 64])",
    ),
}


@lru_cache(maxsize=1)
def pages() -> dict[str, list[tuple[str, str, str, str]]]:
    """Return id -> variants of (severity, what happened, what the report names, how to fix it)."""
    found: dict[str, list[tuple[str, str, str, str]]] = {}
    table = Path(__file__).with_name("_explain.tsv").read_text(encoding="utf-8")
    for line in table.splitlines()[1:]:
        key, severity, what, names, fix = line.split("\t")
        found.setdefault(key, []).append((severity, what, names, fix))
    return found


def _canonical(identifier: str) -> str:
    return identifier.strip().upper()


def page(identifier: str) -> str | None:
    """Return the page of a diagnostic, or `None` if there is no such id."""
    key = _canonical(identifier)
    if key not in pages():
        return None
    lines = [key]
    for severity, what, names, fix in pages()[key]:
        lines += ["", *textwrap.wrap(f"{severity}: {what}", 100)]
        if names:
            lines += textwrap.wrap(f"The report names: {names}", 100, subsequent_indent="  ")
        lines += textwrap.wrap(f"How to fix it: {fix}", 100, subsequent_indent="  ")
    if key in EXAMPLES:
        wrong, right = EXAMPLES[key]
        lines += ["", "Wrong:", textwrap.indent(wrong, "    "), "", "Right:", textwrap.indent(right, "    ")]
    return "\n".join(lines)


def nearest(identifier: str) -> list[str]:
    """Return ids that look like `identifier`."""
    return difflib.get_close_matches(_canonical(identifier), pages(), n=3)


def listing() -> str:
    """Return one line per diagnostic."""
    return "\n".join(f"{key:18} {variants[0][1].splitlines()[0][:100]}" for key, variants in pages().items())
