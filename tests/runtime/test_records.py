# SPDX-License-Identifier: Apache-2.0
"""Configs are dataclasses to the rest of Python, although the package defines them without the standard decorator."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import os
import pickle
import subprocess
import sys

import pytest
from pypto.ir.distributed_compiled_program import DistributedConfig
from pypto.runtime import RunConfig, SimOptions


def test_standard_functions_know_the_fields():
    names = [f.name for f in dataclasses.fields(RunConfig)]
    assert names[:3] == ["platform", "device_id", "rtol"] and names[-1] == "sim"
    assert dataclasses.is_dataclass(SimOptions) and SimOptions.__match_args__[:2] == ("schedule", "seed")
    config = dataclasses.replace(RunConfig(device_id=3), platform="a5sim")
    assert (config.device_id, config.platform) == (3, "a5sim")
    assert dataclasses.asdict(DistributedConfig(device_ids=[4, 2]))["device_ids"] == [4, 2]
    parameters = inspect.signature(RunConfig).parameters
    assert list(parameters) == names and parameters["device_id"].default == 0


def test_defaults_are_fresh():
    one, other = DistributedConfig(), DistributedConfig()
    one.device_ids.append(7)
    assert other.device_ids == [0]


def test_equality_hash_text_and_copies():
    a, b = SimOptions(seed=3, schedule="explore"), SimOptions("explore", 3)
    assert a == b and hash(a) == hash(b) and a != SimOptions() and a != RunConfig()
    assert repr(a).startswith("SimOptions(schedule='explore', seed=3, replay=None, ")
    with pytest.raises(TypeError, match="unhashable"):
        hash(RunConfig())
    for twin in (copy.copy(a), copy.deepcopy(a), pickle.loads(pickle.dumps(a))):
        assert twin == a and twin is not a


def test_wrong_arguments():
    with pytest.raises(TypeError, match="unexpected keyword argument 'shedule'"):
        SimOptions(shedule="fast")
    with pytest.raises(TypeError, match="multiple values for argument 'schedule'"):
        SimOptions("fast", schedule="fast")
    with pytest.raises(TypeError, match="takes at most 11 arguments, got 12"):
        SimOptions("fast", 0, None, 0, "default", None, False, False, False, None, (), 1)
    with pytest.raises(dataclasses.FrozenInstanceError):
        SimOptions().seed = 1
    with pytest.raises(dataclasses.FrozenInstanceError):
        del SimOptions().seed


def test_subclass_of_a_record():
    @dataclasses.dataclass
    class Mine(RunConfig):
        note: str = ""

    mine = Mine(platform="a5sim", note="x")
    assert (mine.note, mine.platform, mine.backend_type.name) == ("x", "a5sim", "Ascend950")


def test_a_run_imports_no_more_than_it_needs():
    # What a process pays for at every start; each of these costs more than a run of a small program.
    code = (
        "import sys, numpy\n"
        "before = set(sys.modules)\n"
        "import pypto.language as pl\n"
        "from pypto.runtime import RunConfig\n"
        "RunConfig(platform='a2a3sim')\n"
        "import pypto.ir.compiler, pypto.runtime._run, pypto.runtime.distributed_runner\n"
        "print(*(set(sys.modules) - before) & {'dataclasses', 'difflib', 'logging', 'threading', 'pathlib', 'json', 'pprint',"
        " 'queue', 'torch', 'numpy.testing', 'numpy.random'})"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env=dict(os.environ), capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == ""
