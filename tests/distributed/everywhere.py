# SPDX-License-Identifier: Apache-2.0
"""Runs a distributed program on both platforms and under other schedules, with no report."""

import numpy as np
from pypto.ir.distributed_compiled_program import DistributedConfig
from pypto.runtime import RunConfig, SimOptions, last_report

RUNS = [
    ("a2a3sim", {}),
    ("a5sim", {"schedule": "explore", "seed": 1, "delay_remote": True}),
    ("a2a3sim", {"schedule": "explore", "seed": 2}),
    ("a5sim", {"schedule": "timed"}),
]


def noise(rng, *shape):
    return rng.standard_normal(shape).astype(np.float32)


def everywhere(program, args, p, outputs, tolerance=1e-4, exact=True):
    """Runs it under strict checking and compares `outputs` (index -> golden); `exact`: every run gives the same bits."""
    first = None
    for platform, sim in RUNS:
        given = [a.copy() if isinstance(a, np.ndarray) else a for a in args]
        config = RunConfig(
            platform=platform,
            distributed_config=DistributedConfig(device_ids=[3 * r + 1 for r in range(p)]),
            sim=SimOptions(checks="strict", **sim),
        )
        program(*given, config=config)
        reports = [d.message for d in last_report().diagnostics if d.severity != "note"]
        assert reports == [], (platform, sim)
        for i, want in outputs.items():
            np.testing.assert_allclose(
                given[i].astype(np.float64), want, rtol=tolerance, atol=tolerance, err_msg=f"{platform} {sim} {i}"
            )
        got = {i: given[i] for i in outputs}
        if first is None:
            first = got
        elif exact:
            for i in outputs:
                np.testing.assert_array_equal(got[i], first[i], err_msg=f"{platform} {sim} {i}")
    return first
