# SPDX-License-Identifier: Apache-2.0
"""The two logs and the environment table (04 section 19)."""

from __future__ import annotations

import subprocess
import sys
import threading

import pypto
import pytest
from pypto import LogLevel, _env
from pypto.runtime import configure_log, log_config, log_level


@pytest.fixture(autouse=True)
def restore():
    before, level = pypto.get_log_level(), log_level()
    yield
    pypto.set_log_level(before)
    configure_log(level)


def test_levels():
    # 2.1, LOG-1
    assert [(m.name, int(m)) for m in LogLevel] == [
        ("DEBUG", 0),
        ("INFO", 1),
        ("WARN", 2),
        ("ERROR", 3),
        ("FATAL", 4),
        ("EVENT", 5),
        ("NONE", 6),
    ]
    assert LogLevel["ERROR"] == 3
    pypto.set_log_level(LogLevel.ERROR)
    assert pypto.get_log_level() is LogLevel.ERROR
    with pytest.raises(ValueError):
        pypto.set_log_level("loud")


def test_thread_override():
    # 2.2
    from pypto.pypto_core import _clear_thread_log_level, _set_thread_log_level

    pypto.set_log_level(LogLevel.WARN)
    seen = []

    def other():
        _set_thread_log_level(LogLevel.DEBUG)
        seen.append(pypto.get_log_level())
        _clear_thread_log_level()
        seen.append(pypto.get_log_level())

    t = threading.Thread(target=other)
    t.start()
    t.join()
    assert seen == [LogLevel.DEBUG, LogLevel.WARN] and pypto.get_log_level() is LogLevel.WARN


def test_lines_go_to_stderr(capsys):
    # LOG-3
    pypto.set_log_level(LogLevel.INFO)
    pypto.log_debug("hidden")
    pypto.log_info("shown once")
    out = capsys.readouterr()
    assert out.out == "" and out.err.count("\n") == 1 and "shown once" in out.err and "INFO" in out.err


@pytest.mark.parametrize(
    "name,value",
    [
        ("debug", 10),
        ("INFO", 20),
        ("timing", 25),
        ("warn", 30),
        ("Warning", 30),
        ("error", 40),
        ("null", 60),
        ("v0", 25),
        ("v9", 25),
        (33, 33),
    ],
)
def test_runtime_levels(name, value):
    # LOG-2
    configure_log(name)
    assert log_level() == log_config.current_level() == value


def test_runtime_level_refusal():
    with pytest.raises(ValueError, match="debug, info, timing"):
        configure_log("loud")


@pytest.mark.parametrize("level,wanted", [(10, "DEBUG"), (20, "INFO"), (25, "WARN"), (40, "ERROR"), (60, "NONE")])
def test_sync(level, wanted):
    # LOG-2
    configure_log(level, sync_pypto=True)
    assert pypto.get_log_level().name == wanted


def test_env_command():
    # LOG-4
    done = subprocess.run([sys.executable, "-m", "pypto", "env"], check=True, capture_output=True, text=True)
    for variable in _env.VARIABLES:
        assert variable.name in done.stdout


def test_unknown_variable(monkeypatch):
    # LOG-4
    monkeypatch.setenv("PYPTO_LOGLEVEL", "1")
    _env._warned.clear()
    with pytest.warns(UserWarning, match=r"PYPTO_LOGLEVEL.*Did you mean PYPTO_LOG_LEVEL"):
        _env.warn_unknown()
