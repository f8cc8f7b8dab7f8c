# SPDX-License-Identifier: Apache-2.0
"""Where artifacts cannot be written: what was to be written, where, why not, and what to pass instead."""

import os

import numpy as np
import pypto.language as pl
import pytest
from pypto import ir
from pypto.runtime import RunConfig


@pl.program
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main(
        self, x: pl.Tensor[[4, 8], pl.FP32], out: pl.Out[pl.Tensor[[4, 8], pl.FP32]]
    ) -> pl.Tensor[[4, 8], pl.FP32]:
        out = pl.store(pl.add(pl.load(x, [0, 0], [4, 8]), 1.0), [0, 0], out)
        return out


@pl.jit
def kernel(x: pl.Tensor[[4, 8], pl.FP32], out: pl.Out[pl.Tensor[[4, 8], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        out[:] = pl.add(x, 1.0)
    return out


def says(error, *fragments):
    for fragment in ("cannot write the compiled program", "output_dir=", "save_kernels_dir=", *fragments):
        assert fragment in str(error), str(error)


def test_a_file_is_in_the_way(tmp_path):  # 04 CMP-5, ERR-4
    (tmp_path / "taken").write_text("mine")
    with pytest.raises(FileExistsError) as caught:
        ir.compile(Program, platform="a2a3sim", output_dir=tmp_path / "taken")
    says(caught.value, str(tmp_path / "taken"), "it is a file, not a directory")
    with pytest.raises(NotADirectoryError) as caught:
        ir.compile(Program, platform="a2a3sim", output_dir=tmp_path / "taken" / "below")
    says(caught.value, str(tmp_path / "taken" / "below"), "Not a directory")
    assert (tmp_path / "taken").read_text() == "mine"


def test_a_directory_that_cannot_be_made(tmp_path):  # 04 CMP-5, ERR-4
    with pytest.raises(OSError) as caught:
        ir.compile(Program, platform="a2a3sim", output_dir=str(tmp_path / ("n" * 300)))
    says(caught.value, "File name too long")


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="needs a directory that nobody may write")
@pytest.mark.parametrize("made", ["ir.compile", "jit"])
def test_an_unwritable_working_directory(monkeypatch, made):  # 04 ART-9, ERR-4
    monkeypatch.delenv("PYPTO_PROG_BUILD_DIR", raising=False)
    monkeypatch.chdir("/proc/self")
    x, out = np.ones((4, 8), np.float32), np.zeros((4, 8), np.float32)
    with pytest.raises(OSError) as caught:
        if made == "jit":
            kernel(x, out, config=RunConfig(platform="a2a3sim"))  # running needs no directory
            np.testing.assert_array_equal(out, x + 1)
            _ = kernel.compile(x, out, config=RunConfig(platform="a2a3sim")).output_dir
        else:
            _ = ir.compile(Program, platform="a2a3sim").output_dir
    says(caught.value, "/build_output", "PYPTO_PROG_BUILD_DIR")


def test_a_working_directory_that_is_gone(tmp_path, monkeypatch):  # 04 ERR-4
    monkeypatch.delenv("PYPTO_PROG_BUILD_DIR", raising=False)
    folder = tmp_path / "gone"
    folder.mkdir()
    monkeypatch.chdir(folder)
    folder.rmdir()
    for given in (None, "relative"):
        with pytest.raises(FileNotFoundError) as caught:
            _ = ir.compile(Program, platform="a2a3sim", output_dir=given).output_dir
        says(caught.value, "the working directory does not exist any more")
    where = tmp_path / "absolute"
    assert ir.compile(Program, platform="a2a3sim", output_dir=where).output_dir == where


@pytest.mark.parametrize(("path", "error", "fragment"), [
    (3, TypeError, "output_dir must be a path (str or os.PathLike) or None, got int"),
    (b"here", TypeError, "output_dir must be a path (str or os.PathLike) or None, got bytes"),
    ("a\0b", ValueError, "null character"),
    ("", ValueError, "output_dir is an empty path; pass None"),
])  # fmt: skip
def test_no_path(path, error, fragment):  # 04 CMP-5
    with pytest.raises(error) as caught:
        ir.compile(Program, platform="a2a3sim", output_dir=path)
    assert fragment in str(caught.value)
