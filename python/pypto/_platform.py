# SPDX-License-Identifier: Apache-2.0
"""The platforms a program can be compiled for and run on, and which one wins when several are named."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from pypto import _env

if TYPE_CHECKING:
    from pypto.backend import BackendType

PLATFORMS = ("a2a3sim", "a2a3", "a5sim", "a5", "mpi", "mpi:a5")
HARDWARE = ("a2a3", "a5")

_MPI_OF = {"a2a3sim": "mpi", "a5sim": "mpi:a5"}
_FABRICS = ("inproc", "mpi")


def check_platform(platform: object) -> str:
    """Return `platform` if it is one of the names; otherwise raise `ValueError` saying which names there are."""
    if isinstance(platform, str) and platform in PLATFORMS:
        return platform
    message = (
        f"Invalid platform {platform!r}. Expected 'a2a3sim', 'a2a3', 'a5sim', or 'a5'."
        " Also 'mpi' and 'mpi:a5' (ranks spread over MPI processes)."
    )
    import difflib

    near = difflib.get_close_matches(str(platform).lower(), PLATFORMS, n=1)
    if near:
        message += f" Did you mean {near[0]!r}?"
    raise ValueError(message)


def arch_of(platform: str) -> str:
    """Return `"a2a3"` or `"a5"`: the architecture that `platform` stands for."""
    return "a5" if platform in ("a5", "a5sim", "mpi:a5") else "a2a3"


def backend_of(platform: str) -> BackendType:
    """Return the `BackendType` that `platform` stands for."""
    from pypto.backend import BackendType

    return BackendType.Ascend950 if arch_of(platform) == "a5" else BackendType.Ascend910B


def default_platform(backend_type: object) -> str:
    """Return the simulator of `backend_type`."""
    from pypto.backend import BackendType

    if not isinstance(backend_type, BackendType):
        raise TypeError(
            f"backend_type must be a pypto.backend.BackendType, got {type(backend_type).__name__}. "
            "Write BackendType.Ascend910B or BackendType.Ascend950, or give platform= instead."
        )
    return "a5sim" if backend_type is BackendType.Ascend950 else "a2a3sim"


def resolve(platform: object, backend_type: object) -> str:
    """Return the platform of a compile: the one named, else the simulator of `backend_type`."""
    return default_platform(backend_type) if platform is None else check_platform(platform)


def is_hardware(platform: str) -> bool:
    """Whether running on `platform` needs a device."""
    return platform in HARDWARE


def writes_artifacts(platform: str) -> bool:
    """Whether a JIT compile for `platform` writes its directory without being asked."""
    return platform in HARDWARE


def running_platform(platform: str) -> str:
    """Return where a run that asked for `platform` takes place: the environment may turn a simulator into MPI."""
    if _use_mpi():
        return _MPI_OF.get(platform, platform)
    return platform


_FABRIC_VARIABLES = frozenset((b"PYPTO_FABRIC", b"PYPTO_PLATFORM"))


def _use_mpi() -> bool:
    if not _env.any_set(_FABRIC_VARIABLES):
        return False
    fabric = os.environ.get("PYPTO_FABRIC", "")
    if fabric and fabric not in _FABRICS:
        raise ValueError(f"PYPTO_FABRIC={fabric!r}: expected 'inproc' (the default) or 'mpi'. Unset it or correct it.")
    named = os.environ.get("PYPTO_PLATFORM", "")
    if named and named != "mpi":
        raise ValueError(f"PYPTO_PLATFORM={named!r}: the only value is 'mpi'. Unset it or correct it.")
    return fabric == "mpi" or named == "mpi"


def require_available(platform: str) -> None:
    """Raise `PlatformUnavailableError` if this machine cannot run programs on `platform`.

    Looks at files only; takes well under a second and touches no device.
    """
    if platform in HARDWARE:
        missing = _missing_for_hardware(platform)
        from pypto._errors import PlatformUnavailableError

        lines = [f"Cannot run on platform {platform!r}: this machine lacks what a device run needs."]
        lines += [f"  missing: {what} (looked for {where})" for what, where in missing]
        lines.append(f"The same program runs on the simulator: use platform={platform + 'sim'!r}.")
        raise _unavailable(PlatformUnavailableError, "\n".join(lines), [what for what, _ in missing])


def require_mpi(platform: str) -> None:
    """Raise `PlatformUnavailableError` if this build cannot spread ranks over MPI processes."""
    from pypto import _core

    if getattr(_core, "has_mpi", lambda: False)():
        return
    from pypto._errors import PlatformUnavailableError

    simulator = "a5sim" if platform == "mpi:a5" else "a2a3sim"
    raise _unavailable(
        PlatformUnavailableError,
        f"Cannot run on platform {platform!r}: this build of pypto has no MPI fabric.\n"
        "  missing: MPI fabric (looked for in the extension module; build with -DPYPTO_MPI=ON)\n"
        f"The same program runs on the simulator: use platform={simulator!r}, or unset PYPTO_FABRIC.",
        ["MPI fabric"],
    )


def _unavailable(cls: type[Exception], message: str, missing: list[str]) -> Exception:
    error = cls(message)
    error.missing = missing  # type: ignore[attr-defined]
    return error


def _missing_for_hardware(platform: str) -> list[tuple[str, str]]:
    """Return every missing thing of a device run as (name, where it was looked for)."""
    from pathlib import Path

    home = os.environ.get("ASCEND_HOME_PATH") or os.environ.get("ASCEND_TOOLKIT_HOME") or "/usr/local/Ascend"
    isa = os.environ.get("PYPTO_PTO_ISA_ROOT", "")
    missing = []
    compiler = Path(home) / "bin" / "ccec"
    if not compiler.exists():
        missing.append(("device compiler ccec", str(compiler)))
    if not isa or not (Path(isa) / "include").is_dir():
        missing.append(("ISA headers", f"{isa}/include" if isa else "PYPTO_PTO_ISA_ROOT, which is not set"))
    if not Path("/dev/davinci_manager").exists():
        missing.append(("driver device node", "/dev/davinci_manager"))
    # The device runtime is not part of this package, so it is missing on every machine until one is installed.
    missing.append(("runtime library", f"{home}/lib64/libpypto_{platform}_runtime.so"))
    return missing
