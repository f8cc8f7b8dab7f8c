# SPDX-License-Identifier: Apache-2.0
"""What a compile depends on is looked at in every call, also when the call before asked the same."""

from __future__ import annotations

import pytest
from pypto import passes
from pypto.ir import DistributedConfig
from pypto.ir._options import from_config, key_of_config
from pypto.runtime import RunConfig


def changes():
    yield "platform", "a5sim"
    yield "dump_passes", True
    yield "save_kernels_dir", "kernels"
    yield "compile_profiling", True
    yield "diagnostic_phase", passes.DiagnosticPhase.NONE
    yield "memory_planner", passes.MemoryPlanner.PTOAS
    yield "analyze_auto_scopes_for_deps", True
    yield "dump_ptoas_passes", True
    yield "disabled_diagnostics", passes.DiagnosticCheckSet()
    yield "distributed_config", DistributedConfig(device_ids=[0, 1])


@pytest.mark.parametrize(("name", "value"), list(changes()))
def test_a_field_changed_in_place_makes_another_key(name, value):  # 04 JIT-19, JIT-23
    config = RunConfig(platform="a2a3sim")
    before = key_of_config(config)
    assert key_of_config(config) == before
    setattr(config, name, value)
    after = key_of_config(config)
    assert after == from_config(config).key() != before
    assert key_of_config(RunConfig(platform="a2a3sim")) == before


def test_the_environment_and_a_context_are_looked_at(monkeypatch):
    config = RunConfig(platform="a2a3sim")
    before = key_of_config(config)
    for given in (None, config):
        monkeypatch.setenv("PYPTO_COMPILE_PROFILING", "1")
        assert key_of_config(given) == from_config(given).key() != before
        monkeypatch.delenv("PYPTO_COMPILE_PROFILING")
        with passes.PassContext([], verification_level=passes.VerificationLevel.NONE):
            assert key_of_config(given) == from_config(given).key() != before
        assert key_of_config(given) == before


def test_a_field_set_to_nonsense_is_an_error_in_the_next_call():
    config = RunConfig(platform="a2a3sim")
    key_of_config(config)
    config.platform = "a7sim"
    with pytest.raises(ValueError, match="a7sim"):
        key_of_config(config)
