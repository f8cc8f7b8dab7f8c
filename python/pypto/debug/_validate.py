# SPDX-License-Identifier: Apache-2.0
"""Running the torch form of every stage of a dump and comparing it with expected results."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def _check_tensors(what: str, tensors: Any) -> Mapping[str, Any]:
    import torch

    if not isinstance(tensors, Mapping):
        raise TypeError(f"{what} must be a mapping from parameter name to tensor, got {type(tensors).__name__}")
    for name, value in tensors.items():
        if not isinstance(name, str) or not isinstance(value, (torch.Tensor, int, float)):
            raise TypeError(f"{what}[{name!r}] must be a torch tensor, got {type(value).__name__}")
    return tensors


def validate_pass_ir_codegen_results(
    ir_dir: str | os.PathLike[str],
    tensors: Mapping[str, Any],
    expected: Mapping[str, Any],
    *,
    rtol: float = 5e-2,
    atol: float = 5e-2,
) -> None:
    """Compute every dumped stage with torch and compare with `expected`.

    Parameters
    ----------
    ir_dir
        A directory of stage dumps, or one dump file.
    tensors
        Arguments by parameter name; they are cloned for each stage.
    expected
        Expected contents by parameter name.

    Raises
    ------
    FileNotFoundError, ValueError
        If there is nothing to run.
    RuntimeError
        If a stage does not run.
    AssertionError
        If a stage gives something else; names stage, tensor and the largest difference.
    """
    import torch

    from pypto.debug._torch_codegen import torch_codegen
    from pypto.language import loads

    path = Path(os.fspath(ir_dir))
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist")
    files = sorted(path.glob("[0-9]*_*.py")) if path.is_dir() else [path]
    if not files:
        raise ValueError(f"{path} holds no dumps (NN_after_<Stage>.py)")
    _check_tensors("tensors", tensors)
    _check_tensors("expected", expected)
    for file in files:
        try:
            program = loads(str(file))
            entry = program.entry
            scope: dict[str, Any] = {}
            exec(compile(torch_codegen(program), f"<torch code of {file.name}>", "exec"), scope)
            names = [p.name for p in entry.params]
            values = {n: tensors[n].clone() if isinstance(tensors[n], torch.Tensor) else tensors[n] for n in names}
            scope[entry.name](*[values[n] for n in names])
        except KeyError as error:
            raise TypeError(f"tensors has no entry for parameter {error}") from None
        except Exception as error:
            raise RuntimeError(f"{file.name}: the stage does not run: {type(error).__name__}: {error}") from error
        for name, want in expected.items():
            got = values[name]
            if not torch.allclose(got.double(), want.double(), rtol=rtol, atol=atol, equal_nan=True):
                worst = (got.double() - want.double()).abs().max().item()
                raise AssertionError(
                    f"{file.name}: {name} differs, largest difference {worst:g} (rtol={rtol}, atol={atol})"
                )
        print(f"{file.name}: ok")
