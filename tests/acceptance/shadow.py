# SPDX-License-Identifier: Apache-2.0
"""Watches every compile and every run of a process and does each of them again in other ways.

While a `Shadow` is active

* the text of every program, as read and after each pass, is parsed again and must denote an equal program (01 L-79,
  04 SER-2) and must not change when it is printed once more;
* every run is repeated, on copies of its arguments, with the program read back from each of these texts, with the saved
  program (04 PLAT-5), with every tile copied, and with element-wise operations one by one: each must leave exactly the bytes
  of the run itself.

Nothing is raised while programs run; what differed is in `failures`.
"""

from __future__ import annotations

import contextlib
import re
import threading
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pypto.language as pl
from pypto import _core


@dataclass
class Variant:
    """One more way to run a program, or why it cannot be made."""

    name: str
    compiled: Any = None


@dataclass
class Counts:
    """How much was compared: a watch that saw nothing proves nothing."""

    programs: int = 0
    texts: int = 0
    runs: int = 0
    repeats: int = 0
    skipped: list[str] = field(default_factory=list)


class Shadow:
    """Context manager; see the module."""

    def __init__(self) -> None:
        self.failures: list[str] = []
        self.counts = Counts()
        self._variants: dict[int, tuple[Any, list[Variant]]] = {}
        self._kept_worlds: list[Any] = []
        self._busy = threading.local()

    # ------------------------------------------------------------------------------------------------- switching on

    def __enter__(self) -> Shadow:
        self._compile, self._run, self._make_world = _core.compile, _core.run, _core.make_world
        _core.compile, _core.run, _core.make_world = self.compile, self.run, self.make_world
        return self

    def __exit__(self, *_: object) -> None:
        _core.compile, _core.run, _core.make_world = self._compile, self._run, self._make_world

    @contextlib.contextmanager
    def _quiet(self) -> Iterator[None]:
        """What the shadow does is not watched, and its warnings are not the program's."""
        self._busy.on = True
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                yield
        finally:
            self._busy.on = False

    # ----------------------------------------------------------------------------------------------------- compiling

    def make_world(self, device_ids: Sequence[int], persistent: bool = False, reset: bool = True) -> Any:
        """Stand in for `_core.make_world`."""
        world = self._make_world(device_ids, persistent, reset)
        if persistent:
            self._kept_worlds.append(world)
        return world

    def compile(self, program: Any, **options: Any) -> Any:
        """Stand in for `_core.compile`."""
        if getattr(self._busy, "on", False):
            return self._compile(program, **options)
        stages = [("as read", program.clone())]
        then = options.pop("after", None)

        def after(name: str, result: Any) -> None:
            stages.append((name, result))
            if then is not None:
                then(name, result)

        compiled = self._compile(program, after=after, **options)
        with self._quiet():
            self.counts.programs += 1
            texts = [(name, self._read_back(name, stage)) for name, stage in stages]
            self._variants[id(compiled)] = (compiled, self._make_variants(compiled, program, texts, options))
        return compiled

    def _read_back(self, stage: str, program: Any) -> Any:
        """Parse the text of `program`; it must say the same. Returns what was read, None if nothing was."""
        where = f"{program.name} ({stage})"
        self.counts.texts += 1
        text = program.as_python()
        try:
            again = pl.parse(text)
        except Exception as error:
            self.failures.append(f"{where}: the text does not parse: {error}\n{text}")
            return None
        difference = _core.structural_difference(program, again, enable_auto_mapping=True)
        if difference:
            self.failures.append(f"{where}: the text denotes another program: {difference}\n{text}")
        elif _plain(again.as_python(), stage) != _plain(text, stage):
            self.failures.append(f"{where}: the text changes when printed again\n{text}\n---\n{again.as_python()}")
        return again

    def _make_variants(self, compiled: Any, program: Any, texts: Any, options: Any) -> list[Variant]:
        variants = []

        def add(name: str, make: Any) -> None:
            try:
                variants.append(Variant(name, make()))
            except Exception as error:
                self.failures.append(f"{program.name}: {name}: {type(error).__name__}: {error}")

        def emitted(copies: bool, chains: bool) -> Any:
            _core.set_emit_debug(copies, chains)
            try:
                return self._compile(program, **options)
            finally:
                _core.set_emit_debug(False, True)

        add("all copies forced", lambda: emitted(True, True))
        add("chains off", lambda: emitted(False, False))
        add("all copies forced, chains off", lambda: emitted(True, False))
        add("saved and loaded", lambda: _core.load(compiled.save()))
        for stage, again in texts:
            if again is not None and not program.sub_workers:
                add(f"read back: {stage}", lambda again=again: self._compile(again, **options))
        return variants

    # ------------------------------------------------------------------------------------------------------- running

    def run(self, compiled: Any, args: Sequence[Any], **options: Any) -> Any:
        """Stand in for `_core.run`."""
        known = self._variants.get(id(compiled))
        if getattr(self._busy, "on", False) or known is None:
            return self._run(compiled, args, **options)
        reason = self._unrepeatable(compiled, args, options)
        before = None if reason else [_copy(a) for a in args]
        report = self._run(compiled, args, **options)
        self.counts.runs += 1
        if reason:
            self.counts.skipped.append(f"{compiled.name}: {reason}")
            return report
        with self._quiet():
            for variant in known[1]:
                self._repeat(variant, before, args, options)
        return report

    def _unrepeatable(self, compiled: Any, args: Sequence[Any], options: Any) -> str | None:
        if compiled.sub_workers:
            return "callbacks"
        if any(options.get("world") is w for w in self._kept_worlds):
            return "windows that outlive the call"
        if any(isinstance(a, (_core.DeviceArg, _core.StackedArg)) for a in args):
            return "resident tensors"
        views = [_memory(a) for a in args if _is_array(a)]
        if any(np.may_share_memory(a, b) for i, a in enumerate(views) for b in views[:i]):
            return "arguments overlap"
        return None

    def _repeat(self, variant: Variant, before: Any, after: Sequence[Any], options: Any) -> None:
        name = f"{variant.compiled.name}: {variant.name}"
        args = [_copy(a) for a in before]
        options = {k: v for k, v in options.items() if k != "world"}
        try:
            self._run(variant.compiled, args, **options)
        except Exception as error:
            self.failures.append(f"{name}: {type(error).__name__}: {error}")
            return
        self.counts.repeats += 1
        for i, (got, want) in enumerate(zip(args, after, strict=True)):
            if _is_array(want) and _bytes(got) != _bytes(want):
                self.failures.append(f"{name}: argument {i} differs from the first run")


def _plain(text: str, stage: str) -> str:
    """What reading must keep: a lowered program says `pl.tile.add` and `pl.const(2, pl.INDEX)` for `pl.add` and `2`
    (04 TXT-5), and comments are not read (01 L-107)."""
    text = re.sub(r"(?m)^\s*#.*\n", "", text)
    if stage == "as read":
        return text
    text = text.replace("pl.tile.", "pl.").replace("pl.tensor.", "pl.")
    return re.sub(r"pl\.const\((-?\d+), pl\.INDEX\)", r"\1", text)


def _is_array(value: Any) -> bool:
    return _core.array_info(value) is not None


def _memory(value: Any) -> Any:
    """A NumPy array of the memory of `value`, whatever its element type."""
    if not hasattr(value, "detach"):
        return np.asarray(value)
    import torch

    bits = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
    return np.asarray(value.detach().view(bits[value.element_size()]))


def _copy(value: Any) -> Any:
    if not _is_array(value):
        return value
    if not hasattr(value, "copy") and not hasattr(value, "clone"):
        return value  # a ctypes scalar
    return value.detach().clone() if hasattr(value, "detach") else value.copy()


def _bytes(value: Any) -> bytes:
    address, dtype, shape, *_ = _core.array_info(value)
    return bytes(_core.array_view(address, dtype, list(shape), keep=value, torch=False).tobytes())
