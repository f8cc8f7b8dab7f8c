# SPDX-License-Identifier: Apache-2.0
"""One dispatch: from a config and a list of arguments to a report. Every run comes through here."""

from __future__ import annotations

import contextvars
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pypto import _core, _env
from pypto._checks import check_run_config
from pypto._platform import is_hardware, require_available, require_mpi, running_platform
from pypto.runtime import _dtypes, _report, _rings, _sim
from pypto.runtime.device_tensor import DeviceTensor, StackedDeviceTensor
from pypto.runtime.runtime_base import Allocation

# Workers whose `with` block this context (thread, asyncio task) is in, outermost first.
active_workers: contextvars.ContextVar[tuple[Any, ...]] = contextvars.ContextVar("pypto_active_workers", default=())

_RING_NAMES = ("ring_task_window", "ring_heap", "ring_dep_pool")
# Variables that make a run different from the plain one.
_VARIABLES = frozenset(
    (
        b"PTO2_RING_TASK_WINDOW",
        b"PTO2_RING_HEAP",
        b"PTO2_RING_DEP_POOL",
        b"PYPTO_SIM",
        b"PYPTO_TRACE",
        b"PYPTO_HW_PARAMS",
    )
)
_TRACE = frozenset((b"PYPTO_TRACE",))
# Nothing to collect, as configs say it (False and 0 are equal).
_NOTHING = (0, 0, 0, False, False)

# The object in the value keeps its identity in the key from being used again.
_plain_options: dict[tuple[tuple[int, ...], int], tuple[Any, Any]] = {}


def _smallest(sizes: Sequence[int]) -> int:
    """Return the size that bounds every ring; 0 when all have their default."""
    return min((s for s in sizes if s), default=0)


def run_options(
    config: Any, device_ids: Sequence[int], dfx: Any = None, *, device_time: bool = False, fresh: bool = False
) -> Any:
    """Return the native options of a run; unless `fresh`, those that follow from `config.sim` alone are made once."""
    ids = tuple(device_ids)
    plain = not device_time and not _env.any_set(_VARIABLES) and (dfx is None or not dfx.any())
    sim = None
    if plain and config is not None:
        sim = config.sim
        plain = config.ring_task_window is None and config.ring_heap is None and config.ring_dep_pool is None
    if plain and fresh and sim is None:
        return _core.RunOptions(device_ids=list(ids))
    if plain and not fresh:
        found = _plain_options.get((ids, id(sim)))
        if found is not None and found[0] is sim:
            return found[1]
    options = (
        _core.RunOptions(device_ids=list(ids)) if plain and sim is None else _options(config, ids, dfx, device_time)
    )
    if plain and not fresh and (sim is None or (sim.trace is None and not sim.delay_remote)):
        if len(_plain_options) >= 1000:
            _plain_options.clear()
        _plain_options[ids, id(sim)] = sim, options
    return options


def _options(config: Any, ids: tuple[int, ...], dfx: Any, device_time: bool) -> Any:
    sim = _sim.effective(config.sim if config is not None else None)
    graph = dfx is not None and dfx.any()
    timeline = bool(dfx is not None and dfx.enable_chip_swimlane) or sim.trace is not None or _env.any_set(_TRACE)
    options = _core.RunOptions(
        device_ids=list(ids),
        schedule=sim.schedule,
        seed=sim.seed,
        replay=sim.replay or "",
        threads=sim.threads,
        checks=sim.checks,
        step_limit=sim.step_limit or 0,
        collect=sim.collect,
        delay_remote=sim.delay_remote,
        rank_weights=dict(sim.rank_weights),
        device_time=sim.device_time or device_time or timeline or bool(getattr(dfx, "enable_pmu", 0)),
        want_task_graph=graph or timeline,
        want_timeline=timeline,
        timeline_level=dfx.enable_chip_swimlane if dfx is not None and dfx.enable_chip_swimlane else 4,
    )
    parameters = _env.get("PYPTO_HW_PARAMS")
    if parameters:
        from pypto.runtime import _hw_params

        options.use_hardware(parameters, _hw_params.load(parameters))
    for name in _RING_NAMES:
        sizes = _rings.effective_ring(name, getattr(config, name) if config is not None else None)
        setattr(options, name, _smallest(sizes))
    if sim.delay_remote and sim.schedule != "explore":
        import warnings

        warnings.warn(
            "W-DELAY-REMOTE: SimOptions.delay_remote has an effect only with schedule='explore'", stacklevel=5
        )
    return options


def where_to_run(platform: str, config: Any) -> str:
    """Return the platform that really runs; raise if this machine cannot run on it."""
    if is_hardware(platform):
        _sim.check_for_platform(config.sim if config is not None else None, platform)
        require_available(platform)
    platform = running_platform(platform)
    if platform.startswith("mpi"):
        require_mpi(platform)
    return platform


# ------------------------------------------------------------------------------------------------------- arguments


def _has_resident(values: Sequence[Any]) -> bool:
    for value in values:
        if isinstance(value, (DeviceTensor, StackedDeviceTensor)):
            return True
    return False


def _position(view: Any, i: int) -> str:
    names = view.param_names
    return f"argument {names[i]!r} (position {i})" if i < len(names) else f"argument {i}"


def native_arguments(
    values: Sequence[Any], view: Any, worker: Any, refuse: Callable[[str, Any], Exception]
) -> Sequence[Any]:
    """Return the arguments as the native module takes them: handles of resident tensors become pointers."""
    if not _has_resident(values):
        return values
    result = list(values)
    for i, value in enumerate(values):
        if isinstance(value, DeviceTensor):
            if worker is None:
                raise refuse(_position(view, i), value)
            result[i] = _device_arg(value, view, i, worker)
        elif isinstance(value, StackedDeviceTensor):
            if worker is None or not worker.is_distributed:
                raise refuse(_position(view, i), value)
            for shard in value.shards:
                _device_arg(shard, view, i, worker)
            result[i] = _core.StackedArg(
                [s.data_ptr for s in value.shards],
                _dtypes.data_type(value.dtype),
                list(value.shape),
                list(value.worker_ids),
                keep=value,
            )
    return result


def _device_arg(tensor: DeviceTensor, view: Any, i: int, worker: Any) -> Any:
    token = tensor.buffer
    where = _position(view, i)
    if not isinstance(token, Allocation):
        raise TypeError(
            f"{where}: {tensor!r} was built by hand from a raw pointer; a resident argument comes from "
            f"{type(worker).__name__}.alloc_tensor(...)"
        )
    if not token.live or token.owner is not worker:
        state = "it was freed" if not token.live else "another worker owns it"
        raise ValueError(
            f"{where}: {tensor!r} is not a live allocation owned by this {type(worker).__name__} ({state})"
        )
    unwritten = token.unwritten
    if unwritten and i < len(view._params) and view._params[i].effective_direction.name != "In":
        token.unwritten = False
    return _core.DeviceArg(
        tensor.data_ptr,
        _dtypes.data_type(tensor.dtype),
        list(tensor.shape),
        rank=token.worker_id,
        keep=token,
        unwritten=unwritten,
    )


def refuse_outside_worker(where: str, value: Any) -> Exception:
    """Return the error for a resident tensor in a one-shot call of a single-device program."""
    return TypeError(
        f"{where}: a {type(value).__name__} lives in the memory of a worker and cannot be passed to a one-shot call; "
        "run the program inside `with ChipWorker(...) as w:` or through w.run(compiled, ...)"
    )


def refuse_one_shot(where: str, value: Any) -> Exception:
    """Return the error for a resident tensor in a one-shot call of a distributed program."""
    return TypeError(
        f"{where}: One-shot calls take host arrays only, got a {type(value).__name__}. Make a worker with "
        "compiled.prepare() and allocate the tensor with its alloc_tensor (or alloc_stacked_tensor)."
    )


# --------------------------------------------------------------------------------------------------------- running

_reported: set[Any] = set()


def _log_findings(report: Any) -> None:
    """Warnings are one WARN line per pair of locations, process and cause; notes are INFO lines."""
    if not report.has_diagnostics:
        return
    found = report.diagnostics
    from pypto.runtime.log_config import runtime_logger

    logger = runtime_logger()
    for d in found:
        if d.severity == "error":
            continue
        places = tuple((a.file, a.line) for a in d.accesses)
        key = (d.id, d.file, d.line, places)
        if key in _reported:
            continue
        _reported.add(key)
        text = f"{d.id + ': ' if d.id else ''}{d.message}"
        if d.file:
            text += f" ({d.file}:{d.line})"
        if d.help:
            text += f"; fix: {d.help}"
        (logger.warning if d.severity == "warning" else logger.info)("%s", text)


def say_where(report: Any) -> None:
    """Print where each rank was when a run was interrupted."""
    for diagnostic in report.diagnostics:
        if diagnostic.severity == "error":
            print(diagnostic.render(), file=sys.stderr)


def dispatch(
    native: Any,
    values: Sequence[Any],
    *,
    platform: str,
    options: Any,
    entry: str | None = None,
    title: str | None = None,
    callbacks: Mapping[str, Any] | None = None,
    world: Any = None,
    folder: Callable[[], Any] | None = None,
    dfx: Any = None,
    program: Any = None,
    trace: Any = None,
    checked: bool = False,
) -> Any:
    """Run once; remember the report; write what was to be collected. Returns the native report."""
    collect = folder is not None and dfx is not None and dfx.any()
    target: Any = None
    if collect:
        from pypto.runtime import _collect

        assert folder is not None
        target = _collect.prepare(folder())
    before = None
    if collect and dfx is not None and dfx.enable_dump_args:
        from pypto.runtime import _collect

        before = _collect.snapshot(native, values, entry)
    try:
        report = _core.run(
            native,
            values,
            entry=entry,
            options=options,
            callbacks=callbacks,
            world=world,
            function=title,
            checked=checked,
        )
    except BaseException as error:
        failed = getattr(error, "report", None)
        if failed is not None:
            _report.remember(failed, platform)
            if isinstance(error, KeyboardInterrupt):
                say_where(failed)
        raise
    _report.remember(report, platform)
    _log_findings(report)
    if collect:
        from pypto.runtime import _collect

        _collect.write(target, report, dfx, native=native, entry=entry, values=values, before=before, program=program)
    where = trace or (_env.get("PYPTO_TRACE") if _env.any_set(_TRACE) else None)
    if where:
        from pypto.runtime import _timeline

        _timeline.append(where, _report.RunReport(report, platform))
    return report


def _trace_of(config: Any) -> Any:
    return config.sim.trace if config is not None and config.sim is not None else None


def current_worker(platform: str, device_id: int | None, runtime: str) -> Any:
    """Return the innermost active one-device worker that fits; `device_id=None` fits any device."""
    for worker in reversed(active_workers.get()):
        if worker.platform == platform and worker.runtime == runtime and device_id in (None, worker.device_id):
            return worker
    return None


def run_single(
    program: Any,
    entry: str | None,
    values: Sequence[Any],
    *,
    platform: str,
    device_id: int,
    config: Any = None,
    dfx: Any = None,
    worker: Any = None,
    title: str | None = None,
    view: Any = None,
    device_time: bool = False,
) -> Any:
    """Run a single-device program once on `worker`, or on a device that lives for this call."""
    native = program._native_for(platform)
    platform = where_to_run(platform, config)
    args = native_arguments(values, view or program, worker, refuse_outside_worker)
    if dfx is None and config is not None:
        dfx = _dfx(config)
    options = run_options(config, (device_id,), dfx, device_time=device_time)
    return dispatch(
        native,
        args,
        platform=platform,
        options=options,
        entry=entry,
        title=title,
        folder=lambda: program.output_dir,
        dfx=dfx,
        program=program,
        trace=_trace_of(config),
    )


def _dfx(config: Any) -> Any:
    asked = (
        config.enable_chip_swimlane,
        config.enable_dump_args,
        config.enable_pmu,
        config.enable_dep_gen,
        config.enable_scope_stats,
    )
    if asked == _NOTHING:  # on the path of every call
        return None
    from pypto.runtime._config import _DfxOpts

    opts = _DfxOpts.from_run_config(config)
    return opts if opts.any() else None


def call_single(program: Any, entry: str | None, values: list[Any], config: Any, title: str) -> None:
    """A call of a single-device program from Python."""
    if config is not None:
        check_run_config(f"a call of {title!r}", config)
    platform = program.platform if config is None else config.platform
    device_id = 0 if config is None else config.device_id
    if active_workers.get():
        worker = current_worker(platform, None if config is None else device_id, program.runtime_name)
        if worker is not None:
            worker._run(program, entry, values, config, title)
            return
    from pypto.runtime import runner

    replaced = runner.execute_compiled
    if replaced is not runner._own_execute_compiled:
        from pypto.runtime._config import _DfxOpts

        dfx = _DfxOpts() if config is None else _DfxOpts.from_run_config(config)
        folder = program.output_dir if entry is None else program.output_dir / "next_levels" / entry
        replaced(folder, values, platform=platform, device_id=device_id, dfx=dfx)
        return
    run_single(
        program,
        entry,
        values,
        platform=platform,
        device_id=device_id,
        config=config,
        title=title,
        view=program if entry is None else program[entry],
    )
