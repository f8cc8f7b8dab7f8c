# SPDX-License-Identifier: Apache-2.0
"""`golden.py` of a test case: a module that makes the inputs and computes the expected results."""

from __future__ import annotations

import ast
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pypto import _source
from pypto.runtime.tensor_spec import ScalarSpec, TensorSpec

__all__ = [
    "generate_golden_source",
    "write_golden",
    "_data_dir_has_files",
    "_extract_compute_golden",
    "_materialize_tensors",
    "_save_data_files",
]


def _extract_compute_golden(fn: Callable[..., Any]) -> str:
    """Return the source of `fn` as `def compute_golden(tensors, params=None)`, with what it needs before it.

    Raises
    ------
    RuntimeError
        If the source cannot be read.
    """
    tree = _source.tree_of(fn)
    tree = _source.drop_self(tree, getattr(fn, "__self__", None))
    tree.name = "compute_golden"
    _source._strip_annotations(tree)
    arguments = tree.args
    names = [a.arg for a in arguments.args]
    if not names:
        raise RuntimeError(f"golden function {getattr(fn, '__name__', fn)!r} must take (tensors, params)")
    if len(names) == 1:
        arguments.args.append(ast.arg(arg="params"))
        names.append("params")
    if len(arguments.defaults) == 0:
        arguments.defaults = [ast.Constant(value=None)]
    ast.fix_missing_locations(tree)
    before = _source.surroundings(tree, fn, {"compute_golden", *names})
    text = "\n".join(before)
    return (text + "\n\n\n" if text else "") + ast.unparse(tree) + "\n"


def _dtype_text(dtype: Any) -> str:
    return str(dtype)


def _init_lines(spec: TensorSpec, helpers: list[str]) -> str:
    """Return an expression that makes the tensor of `spec`; functions it needs are appended to `helpers`."""
    import torch

    shape, dtype, init = tuple(int(n) for n in spec.shape), _dtype_text(spec.dtype), spec.init_value
    if init is None:
        return f"torch.zeros({shape}, dtype={dtype})"
    if isinstance(init, (bool, int, float)):
        text = _source.literal(init)
        return f"torch.full({shape}, {text}, dtype={dtype})"
    if isinstance(init, torch.Tensor):
        return f"{_source.tensor_literal(init)}.to({dtype})"
    for name in ("zeros", "ones", "randn", "rand"):
        if init is getattr(torch, name):
            if name in ("randn", "rand") and not spec.dtype.is_floating_point:
                return f"torch.{name}({shape}).to({dtype})"
            return f"torch.{name}({shape}, dtype={dtype})"
    if callable(init):
        function = f"_init_{len(helpers)}_{''.join(c if c.isalnum() else '_' for c in spec.name)}"
        helpers.append(_source.self_contained(init, function))
        return f"torch.as_tensor({function}()).to({dtype})"
    raise TypeError(
        f"TensorSpec {spec.name!r}: init_value must be None, a number, a tensor or a callable, "
        f"got {type(init).__name__}"
    )


def generate_golden_source(
    specs: Sequence[TensorSpec],
    golden_fn: Callable[..., Any] | None,
    rtol: float,
    atol: float,
    *,
    compute_golden_src: str | None = None,
    scalar_specs: Sequence[ScalarSpec] | None = None,
    data_dir: str | os.PathLike[str] | None = None,
    use_data_files: bool = False,
) -> str:
    """Return the text of a self-contained `golden.py`.

    Parameters
    ----------
    specs, scalar_specs
        The tensors and scalars in parameter order.
    golden_fn, compute_golden_src
        What computes the expected results: a function `(tensors, params)`, or its text.
    rtol, atol
        Tolerances.
    data_dir, use_data_files
        Load every tensor from `<data_dir>/in/<name>.pt` (`data` beside the file by default).
    """
    if compute_golden_src is None:
        if golden_fn is None:
            raise ValueError("generate_golden_source needs golden_fn or compute_golden_src")
        compute_golden_src = _extract_compute_golden(golden_fn)
    helpers: list[str] = []
    body: list[str] = []
    if use_data_files:
        where = repr(os.fspath(data_dir)) if data_dir is not None else None
        body.append(f"data = Path({where})" if where else 'data = Path(__file__).resolve().parent / "data"')
    for spec in specs:
        variable = f"t_{len(body)}"
        if use_data_files and not (spec.is_output and spec.init_value is None):
            body.append(f"{variable} = torch.load(data / 'in' / {spec.name + '.pt'!r})")
        elif use_data_files:
            body.append(
                f"{variable} = torch.zeros({tuple(int(n) for n in spec.shape)}, dtype={_dtype_text(spec.dtype)})"
            )
        else:
            body.append(f"{variable} = {_init_lines(spec, helpers)}")
        body.append(f"result.append(({spec.name!r}, {variable}))")
    for scalar in scalar_specs or ():
        value = scalar.create_scalar()
        body.append(f"result.append(({scalar.name!r}, ctypes.{type(value).__name__}({_source.literal(value.value)})))")
    outputs = [s.name for s in specs if s.is_output]
    lines = "\n".join(f"    {line}" for line in body)
    before = "\n\n".join(helpers)
    return f'''"""Inputs and expected results of one test case. Generated by PyPTO."""

import ctypes
from pathlib import Path

import torch

__outputs__ = {outputs!r}
RTOL = {_source.literal(float(rtol))}
ATOL = {_source.literal(float(atol))}


{before}{chr(10) * 3 if before else ""}def generate_inputs(params):
    result = []
{lines}
    return result


{compute_golden_src.rstrip()}
'''


def write_golden(path: str | os.PathLike[str], *args: Any, **kwargs: Any) -> None:
    """Write what `generate_golden_source` returns to `path`."""
    Path(path).write_text(generate_golden_source(*args, **kwargs), encoding="utf-8")


def _materialize_tensors(specs: Sequence[TensorSpec]) -> dict[str, Any]:
    """Return one new tensor per spec, by name."""
    return {spec.name: spec.create_tensor() for spec in specs}


def _data_dir_has_files(data_dir: str | os.PathLike[str], specs: Sequence[TensorSpec]) -> bool:
    """Return whether `data_dir` holds every input, initialised output and expected output."""
    folder = Path(data_dir)
    for spec in specs:
        if (not spec.is_output or spec.init_value is not None) and not (folder / "in" / f"{spec.name}.pt").exists():
            return False
        if spec.is_output and not (folder / "out" / f"{spec.name}.pt").exists():
            return False
    return True


def _save_data_files(tensors: Mapping[str, Any], directory: str | os.PathLike[str]) -> None:
    """Save each tensor as `<directory>/<name>.pt`."""
    import torch

    folder = Path(directory)
    folder.mkdir(parents=True, exist_ok=True)
    for name, tensor in tensors.items():
        torch.save(tensor, folder / f"{name}.pt")
