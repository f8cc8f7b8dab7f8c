# SPDX-License-Identifier: Apache-2.0
"""Low-level steps of a run: assembling a directory, running the loaded form, comparing results."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pypto._platform import check_platform
from pypto.runtime import _dtypes, _flat, _loaded, _run
from pypto.runtime._config import _DfxOpts

__all__ = ["compile_and_assemble", "execute_on_device", "build_orch_args_from_inputs", "validate_golden"]

_SHOWN = 20


def compile_and_assemble(work_dir: str | os.PathLike[str], platform: str) -> tuple[Any, str, dict[str, Any]]:
    """Load the directory of a compiled program for `platform`.

    Returns
    -------
    tuple
        The loaded form (opaque; runs on any thread, repeatedly), the runtime's name, its settings.

    Raises
    ------
    FileNotFoundError
        If the directory is missing or is no artifact directory.
    """
    check_platform(platform)
    program = _loaded.program(Path(work_dir))
    owner = getattr(program, "_owner", program)
    owner._native_for(platform)  # errors of lowering for another architecture surface here
    return program.chip_callable, program.runtime_name, program.runtime_config


def run_callable(
    chip_callable: Any, args: Sequence[Any], *, platform: str, device_id: int, dfx: Any = None, config: Any = None
) -> None:
    """Run what `compile_and_assemble` loaded, with a flat argument list."""
    owner, entry = chip_callable.owner, chip_callable.entry
    view = owner if entry is None else owner[entry]
    values = _flat.in_parameter_order(args, view)
    worker = _run.current_worker(platform, device_id, owner.runtime_name)
    _run.run_single(
        owner,
        entry,
        values,
        platform=platform,
        device_id=device_id,
        config=config,
        dfx=dfx,
        worker=worker,
        title=view._title,
        view=view,
    )


def execute_on_device(
    chip_callable: Any,
    orch_args: Sequence[Any],
    platform: str,
    runtime_name: str,
    device_id: int,
    *,
    level: int = 2,
    aicpu_thread_num: int | None = None,
    enable_sdma: bool = False,
    output_prefix: str | os.PathLike[str] | None = None,
    enable_chip_swimlane: int = 0,
    enable_dump_args: int = 0,
    enable_pmu: int = 0,
    enable_dep_gen: bool = False,
    enable_scope_stats: bool = False,
    runtime_env: Mapping[str, str] | None = None,
) -> None:
    """Run a loaded program once, in place; collected files go below `output_prefix`."""
    from pypto.runtime import _collect
    from pypto.runtime._config import swimlane_level

    check_platform(platform)
    if level != 2:
        raise ValueError(f"execute_on_device runs one device (level=2), got level={level}")
    dfx = _DfxOpts(
        swimlane_level(enable_chip_swimlane),
        int(enable_dump_args),
        int(enable_pmu),
        bool(enable_dep_gen),
        bool(enable_scope_stats),
    )
    if dfx.any() and output_prefix is None:
        raise ValueError("execute_on_device: collection flags need output_prefix=, where the files go")
    with _collect.redirect(output_prefix):
        run_callable(chip_callable, orch_args, platform=platform, device_id=device_id, dfx=dfx)


def build_orch_args_from_inputs(
    inputs: Sequence[tuple[str, Any]], output_names: Sequence[str] | set[str]
) -> tuple[list[Any], dict[str, Any], dict[str, Any], dict[str, Any]]:
    """Split a list of `(name, value)`.

    Returns
    -------
    tuple
        Flat arguments, all tensors by name, those that are inputs, those that are outputs (named in `output_names`, or
        with a name that starts with `out`).
    """
    names = set(output_names)
    flat, tensors, ins, outs = [], {}, {}, {}
    for name, value in inputs:
        if _flat.is_tensor_argument(value):
            value = _contiguous(value)
            tensors[name] = value
            (outs if name in names or name.startswith("out") else ins)[name] = value
        flat.append(value)
    return flat, tensors, ins, outs


def _contiguous(value: Any) -> Any:
    if hasattr(value, "is_contiguous") and hasattr(value, "contiguous"):
        return value if value.is_contiguous() else value.contiguous()
    return value


def _numbers(value: Any) -> np.ndarray:
    """Return the values of any array as float64, complex or int64 numbers."""
    if type(value).__module__.partition(".")[0] == "torch":
        value = value.detach().cpu()
        if value.is_floating_point():
            return value.double().numpy()
        return value.numpy()
    array = _dtypes.as_numpy(value)
    return array.astype(np.float64) if array.dtype.kind == "V" or array.dtype.kind == "f" else array


def validate_golden(
    outputs: Mapping[str, Any], golden: Mapping[str, Any], rtol: float = 1e-5, atol: float = 1e-5
) -> None:
    """Compare results with expected values, element by element: `abs(a - b) <= atol + rtol * abs(b)`.

    Positions where the expected value is NaN are not compared.

    Raises
    ------
    AssertionError
        Naming the output, the number of wrong elements, the tolerances and up to 20 of them.
    """
    for name, expected_array in golden.items():
        if name not in outputs:
            raise AssertionError(f"Output '{name}' is missing; there are {sorted(outputs)}")
        actual, expected = _numbers(outputs[name]), _numbers(expected_array)
        if actual.shape != expected.shape:
            raise AssertionError(
                f"Output '{name}' does not match golden. Shapes differ: got {list(actual.shape)}, "
                f"expected {list(expected.shape)}"
            )
        a = actual.astype(np.float64) if actual.dtype.kind != "c" else actual
        b = expected.astype(np.float64) if expected.dtype.kind != "c" else expected
        if actual.dtype.kind in "iu" and expected.dtype.kind in "iu" and (rtol, atol) == (0, 0):
            wrong = actual != expected  # large integers lose bits as doubles
        else:
            with np.errstate(invalid="ignore"):
                close = np.abs(a - b) <= atol + rtol * np.abs(b)
            wrong = ~(close | (a == b) | np.isnan(b))
        count = int(np.count_nonzero(wrong))
        if count == 0:
            continue
        lines = [
            f"Output '{name}' does not match golden.",
            f"Mismatched elements: {count}/{wrong.size}",
            f"rtol={rtol}, atol={atol}",
        ]
        for position in np.argwhere(wrong)[:_SHOWN]:
            index = tuple(int(i) for i in position)
            lines.append(f"  [{', '.join(map(str, index))}] actual={actual[index]!s} expected={expected[index]!s}")
        if count > _SHOWN:
            lines.append(f"  ... and {count - _SHOWN} more")
        raise AssertionError("\n".join(lines))
