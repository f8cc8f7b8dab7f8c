# SPDX-License-Identifier: Apache-2.0
"""Running one case of the end-to-end harness from its directory."""

from __future__ import annotations

import itertools
import os
import sys
from typing import TYPE_CHECKING, Any

from pypto._lazy import LazyModule
from pypto.runtime._config import _DfxOpts

if TYPE_CHECKING:
    import pathlib
else:
    pathlib = LazyModule("pathlib")

_module_number = itertools.count()


def load_golden(path: str | os.PathLike[str]) -> Any:
    """Import a `golden.py` under a name of its own."""
    where = pathlib.Path(os.fspath(path)).absolute()
    if not where.is_file():
        raise FileNotFoundError(f"{where} does not exist; the harness writes it before a case runs")
    import importlib.util

    name = f"_pypto_golden_{os.getpid()}_{next(_module_number)}"
    spec = importlib.util.spec_from_file_location(name, where)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    finally:
        sys.modules.pop(name, None)
    return module


def _expected(module: Any, work_dir: pathlib.Path, tensors: dict[str, Any], outputs: list[str]) -> dict[str, Any]:
    """Return the expected values: saved ones if all are there, else what `compute_golden` makes of clones."""
    import torch

    files = {name: work_dir / "data" / "out" / f"{name}.pt" for name in outputs}
    if files and all(f.exists() for f in files.values()):
        return {name: torch.load(f) for name, f in files.items()}
    clones = {name: (t.clone() if name in outputs and hasattr(t, "clone") else t) for name, t in tensors.items()}
    module.compute_golden(clones, {"name": "Default"})
    return {name: clones[name] for name in outputs}


def _execute_on_device(
    work_dir: str | os.PathLike[str],
    golden_path: str | os.PathLike[str],
    chip_callable: Any,
    runtime_name: str,
    platform: str,
    device_id: int,
    dfx: _DfxOpts = _DfxOpts(),  # noqa: B008 (frozen)
    validate: bool = True,
    actual_out_dir: str | os.PathLike[str] | None = None,
    enable_sdma: bool = False,
) -> None:
    """Run one case: inputs from `golden.py`, one run, optionally saved results and a comparison.

    Raises
    ------
    AssertionError
        If `validate` and a result does not match.
    """
    import torch

    from pypto.runtime import device_runner

    folder = pathlib.Path(os.fspath(work_dir))
    module = load_golden(golden_path)
    inputs = module.generate_inputs({"name": "Default"})
    outputs = list(getattr(module, "__outputs__", []))
    flat, tensors, _, _ = device_runner.build_orch_args_from_inputs(inputs, outputs)
    expected = _expected(module, folder, tensors, outputs) if validate else {}
    device_runner.run_callable(chip_callable, flat, platform=platform, device_id=device_id, dfx=dfx)
    results = {name: tensors[name] for name in outputs}
    if actual_out_dir is not None:
        target = pathlib.Path(os.fspath(actual_out_dir))
        target.mkdir(parents=True, exist_ok=True)
        for name, tensor in results.items():
            torch.save(tensor, target / f"{name}.pt")
    if validate:
        device_runner.validate_golden(
            results, expected, rtol=getattr(module, "RTOL", 1e-5), atol=getattr(module, "ATOL", 1e-5)
        )


def validate_persisted_outputs(
    work_dir: str | os.PathLike[str], rtol: float | None = None, atol: float | None = None
) -> None:
    """Compare the saved results of a case, `data/actual`, with the expected ones.

    Expected values are `data/out/<name>.pt`, else what `golden.py` computes.

    Raises
    ------
    FileNotFoundError
        If there are no saved results.
    AssertionError
        If a result does not match.
    """
    import torch

    from pypto.runtime import device_runner

    folder = pathlib.Path(os.fspath(work_dir))
    actual = folder / "data" / "actual"
    files = sorted(actual.glob("*.pt")) if actual.is_dir() else []
    if not files:
        raise FileNotFoundError(f"{actual} holds no results; the case did not run")
    results = {f.stem: torch.load(f) for f in files}
    out = folder / "data" / "out"
    if all((out / f"{name}.pt").exists() for name in results):
        expected = {name: torch.load(out / f"{name}.pt") for name in results}
        module = None
    else:
        module = load_golden(folder / "golden.py")
        tensors = dict(module.generate_inputs({"name": "Default"}))
        expected = _expected(module, folder, tensors, list(results))
    if module is None and (rtol is None or atol is None) and (folder / "golden.py").exists():
        module = load_golden(folder / "golden.py")
    tolerances = [
        float(getattr(module, name, 1e-5)) if given is None else float(given)
        for name, given in (("RTOL", rtol), ("ATOL", atol))
    ]
    device_runner.validate_golden(results, expected, rtol=tolerances[0], atol=tolerances[1])
