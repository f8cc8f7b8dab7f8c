# SPDX-License-Identifier: Apache-2.0
"""Small programs around one mistake: the text of a module with `{holes}`, and what its run says."""

import importlib.util
import sys
import warnings

import numpy as np
from pypto.ir.distributed_compiled_program import DistributedConfig
from pypto.runtime import RunConfig, SimOptions, last_report

COPY = "y = pl.store(pl.load(x, [0, 0], [1, 64]), [0, 0], y)"

TEXT = """import pypto.language as pl
import pypto.language.distributed as pld

NR = pl.dynamic("NR")


@pl.jit.incore
def kernel(
    x: pl.Tensor[[1, 64], pl.FP32],
    y: pl.Out[pl.Tensor[[1, 64], pl.FP32]],
    data: pld.DistributedTensor[{data_shape}, {data_dtype}],
    signal: pld.DistributedTensor[{signal_shape}, {signal_dtype}],
):
    ctx = pld.get_comm_ctx(data)
    me = pld.rank(ctx)
    n = pld.nranks(ctx)
{kernel}
    return y


@pl.jit
def on_device(
    x: pl.Tensor[[1, 64], pl.FP32],
    y: pl.Out[pl.Tensor[[1, 64], pl.FP32]],
    data: pld.DistributedTensor[{data_shape}, {data_dtype}],
    signal: pld.DistributedTensor[{signal_shape}, {signal_dtype}],
):
{device}
    return y


@pl.jit.host
def program(
    x: pl.Tensor[[NR, 1, 64], pl.FP32],
    y: pl.Out[pl.Tensor[[NR, 1, 64], pl.FP32]],
):
{buffers}
    for r in pl.range({bound}):
{views}
{dispatch}
"""

DEFAULTS = {
    "data_shape": "[1, 64]",
    "data_dtype": "pl.FP32",
    "signal_shape": "[4, 1]",
    "signal_dtype": "pl.INT32",
    "kernel": COPY,
    "device": "y = kernel(x, y, data, signal)",
    "buffers": "data_buf = pld.alloc_window_buffer({data_shape}, dtype={data_dtype})\n"
    "signal_buf = pld.alloc_window_buffer({signal_shape}, dtype={signal_dtype})",
    "bound": "pld.world_size()",
    "views": "data = pld.window(data_buf, {data_shape}, dtype={data_dtype})\n"
    "signal = pld.window(signal_buf, {signal_shape}, dtype={signal_dtype})",
    "dispatch": "on_device(x[r], y[r], data, signal, device=r)",
}
DEPTH = {"kernel": 1, "device": 1, "buffers": 1, "views": 2, "dispatch": 2}


def load_file(path, name, made=None):
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    if made is not None:
        made.append(name)
    spec.loader.exec_module(module)
    return module


def text_of(before="", **holes) -> str:
    """The module with these pieces in place of the default ones; `before` comes after the imports."""
    pieces = DEFAULTS | holes
    types = {k: v for k, v in pieces.items() if k.endswith(("_shape", "_dtype"))}
    for hole, depth in DEPTH.items():
        lines = pieces[hole]
        for name, value in types.items():
            lines = lines.replace("{" + name + "}", value)
        pieces[hole] = "\n".join("    " * depth + line if line else "" for line in lines.splitlines())
    text = TEXT.format(**pieces)
    return text.replace("NR = pl.dynamic", before + "\nNR = pl.dynamic", 1) if before else text


def line_of(text: str, mark: str = "here") -> int:
    """The line that ends in `# <- mark`."""
    return next(i for i, line in enumerate(text.splitlines(), 1) if line.endswith(f"# <- {mark}"))


def arrays(nranks: int):
    x = np.random.default_rng(nranks).standard_normal((nranks, 1, 64), dtype=np.float32)
    return x, np.zeros_like(x)


def compile_for(program, given, nranks: int, platform="a2a3sim", ids=None):
    """The compiled program and the compiler's warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        world = DistributedConfig(device_ids=ids or list(range(nranks)))
        compiled = program.compile(*given, config=RunConfig(platform=platform, distributed_config=world))
    return compiled, [str(w.message) for w in caught]


def diagnostics(compiled, given, **sim):
    """What a run that goes on after errors reports."""
    compiled(*given, config=RunConfig(platform=compiled.platform, sim=SimOptions(collect=True, **sim)))
    return last_report().diagnostics
