# SPDX-License-Identifier: Apache-2.0
"""The chips as trees: SoC -> dies -> clusters -> cores -> memories. All objects are read-only and hashable."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar

from pypto._checks import check_member, listed
from pypto.backend import BackendType, default_backend_type
from pypto.ir import CoreType, MemorySpace


class _Counts(Mapping[Any, int]):
    """A read-only, hashable mapping from a component to how many of it there are."""

    def __init__(self, counts: Mapping[Any, int]) -> None:
        self._counts = dict(counts)

    def __getitem__(self, key: Any) -> int:
        return self._counts[key]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._counts)

    def __len__(self) -> int:
        return len(self._counts)

    def __hash__(self) -> int:
        return hash(frozenset(self._counts.items()))

    def __repr__(self) -> str:
        return repr(self._counts)


@dataclass(frozen=True)
class Mem:
    """One on-chip memory: its space, its usable bytes, and the alignment of buffers in it."""

    mem_type: Any
    mem_size: int
    alignment: int


@dataclass(frozen=True)
class Core:
    """One core and the memories it holds."""

    core_type: Any
    mems: tuple[Mem, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "mems", tuple(listed("Core: mems", self.mems, "memories")))


class _Level:
    """A component made of counted smaller ones."""

    _name: ClassVar[str] = ""
    __slots__ = ("_counts",)

    def __init__(self, counts: Mapping[Any, int] | Any, count: int | None = None) -> None:
        made = counts if isinstance(counts, Mapping) else {counts: 1 if count is None else count}
        object.__setattr__(self, "_counts", _Counts(made))

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"{type(self).__name__} is read-only")

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and dict(self._counts) == dict(other._counts)  # type: ignore[attr-defined]

    def __hash__(self) -> int:
        return hash((type(self).__name__, self._counts))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._counts!r})"


class Cluster(_Level):
    """Cores that share a cluster."""

    __slots__ = ()

    @property
    def core_counts(self) -> Mapping[Core, int]:
        """Core -> how many."""
        return self._counts


class Die(_Level):
    """Clusters on one die."""

    __slots__ = ()

    @property
    def cluster_counts(self) -> Mapping[Cluster, int]:
        """Cluster -> how many."""
        return self._counts


class SoC(_Level):
    """Dies of one device."""

    __slots__ = ()

    @property
    def die_counts(self) -> Mapping[Die, int]:
        """Die -> how many."""
        return self._counts


class _Handler:
    """Names that code generation uses for a backend."""

    def __init__(self, arch: str) -> None:
        self._arch = arch

    def get_pto_target_arch(self) -> str:
        """Return `"a2a3"` or `"a5"`."""
        return self._arch

    def get_default_sim_platform(self) -> str:
        """Return `"a2a3sim"` or `"a5sim"`."""
        return f"{self._arch}sim"


class Backend:
    """The description of one chip.

    Parameters
    ----------
    backend_type
        Which family it is.
    soc
        The tree of components.
    paths
        Direct data paths: memory space -> spaces it can be copied to.
    """

    backend_type: BackendType

    def __init__(self, backend_type: BackendType, soc: SoC, paths: Mapping[Any, tuple[Any, ...]]) -> None:
        self.backend_type = backend_type
        self._soc = soc
        self._paths = dict(paths)

    @property
    def soc(self) -> SoC:
        """The tree of components."""
        return self._soc

    @property
    def name(self) -> str:
        """Name of the family, such as `"Ascend910B"`."""
        return self.backend_type.name

    def get_handler(self) -> _Handler:
        """Return the names that code generation uses."""
        return _Handler("a5" if self.backend_type is BackendType.Ascend950 else "a2a3")

    def _cores(self) -> Iterator[tuple[Core, int]]:
        for die, dies in self._soc.die_counts.items():
            for cluster, clusters in die.cluster_counts.items():
                for core, cores in cluster.core_counts.items():
                    yield core, dies * clusters * cores

    def get_core_count(self, core_type: Any) -> int:
        """Return the number of cores of `core_type` on a device."""
        return sum(n for core, n in self._cores() if core.core_type == core_type)

    def get_mem_size(self, mem_type: Any) -> int:
        """Return the usable bytes of memory `mem_type` of one core; 0 if the chip lacks it."""
        return max((m.mem_size for core, _ in self._cores() for m in core.mems if m.mem_type == mem_type), default=0)

    def find_mem_path(self, src: Any, dst: Any) -> list[Any]:
        """Return the shortest chain of memories from `src` to `dst`, both included; empty if there is none."""
        chains, seen = [[src]], {src}
        while chains:
            following = []
            for chain in chains:
                if chain[-1] == dst:
                    return chain
                for space in self._paths.get(chain[-1], ()):
                    if space not in seen:
                        seen.add(space)
                        following.append([*chain, space])
            chains = following
        return []

    def export_to_file(self, path: str | os.PathLike[str]) -> None:
        """Write the description as JSON."""
        with open(path, "w", encoding="utf-8") as file:
            json.dump(self._to_dict(), file, indent=2, sort_keys=True)

    @staticmethod
    def import_from_file(path: str | os.PathLike[str]) -> Backend:
        """Read what `export_to_file` wrote; `ValueError` if the file is something else."""
        with open(path, encoding="utf-8") as file:
            try:
                return _from_dict(json.load(file))
            except (KeyError, TypeError, ValueError, AttributeError) as error:
                raise ValueError(f"{os.fspath(path)} is not a backend description: {error!r}") from None

    def _to_dict(self) -> dict[str, Any]:
        return {
            "backend_type": self.backend_type.name,
            "dies": [
                {
                    "count": dies,
                    "clusters": [
                        {
                            "count": clusters,
                            "cores": [
                                {
                                    "count": cores,
                                    "core_type": core.core_type.name,
                                    "mems": [[m.mem_type.name, m.mem_size, m.alignment] for m in core.mems],
                                }
                                for core, cores in cluster.core_counts.items()
                            ],
                        }
                        for cluster, clusters in die.cluster_counts.items()
                    ],
                }
                for die, dies in self._soc.die_counts.items()
            ],
            "paths": {src.name: [d.name for d in dst] for src, dst in self._paths.items()},
        }

    def __repr__(self) -> str:
        cube, vector = self.get_core_count(CoreType.CUBE), self.get_core_count(CoreType.VECTOR)
        return f"<Backend {self.name}: {cube} cube cores, {vector} vector cores>"


def _from_dict(data: Any) -> Backend:
    def core(item: Any) -> Core:
        mems = tuple(Mem(getattr(MemorySpace, name), size, align) for name, size, align in item["mems"])
        return Core(getattr(CoreType, item["core_type"]), mems)

    soc = SoC(
        {
            Die(
                {
                    Cluster({core(c): c["count"] for c in cluster["cores"]}): cluster["count"]
                    for cluster in die["clusters"]
                }
            ): die["count"]
            for die in data["dies"]
        }
    )
    paths = {getattr(MemorySpace, s): tuple(getattr(MemorySpace, d) for d in dst) for s, dst in data["paths"].items()}
    return Backend(BackendType[data["backend_type"]], soc, paths)


def _make(backend_type: BackendType, dies: int, clusters: int, vec: int, acc: int, bias: int, scale: int) -> Backend:
    space = MemorySpace
    cube_mems = [
        Mem(space.Mat, 524288, 128),
        Mem(space.Left, 65536, 64),
        Mem(space.Right, 65536, 64),
        Mem(space.Acc, acc, 128),
        Mem(space.Bias, bias, 64),
    ]
    if scale:
        cube_mems += [Mem(space.LeftScale, scale, 32), Mem(space.RightScale, scale, 32)]
    cube = Core(CoreType.CUBE, tuple(cube_mems))
    vector = Core(CoreType.VECTOR, (Mem(space.Vec, vec, 128),))
    soc = SoC({Die({Cluster({cube: 1, vector: 2}): clusters}): dies})
    a5 = backend_type is BackendType.Ascend950
    paths = {
        space.DDR: (space.Vec, space.Mat),
        space.Vec: (space.DDR, space.Mat) if a5 else (space.DDR,),
        space.Mat: (space.Left, space.Right, space.Bias, space.LeftScale, space.RightScale)
        if a5
        else (space.DDR, space.Left, space.Right, space.Bias),
        space.Left: (space.Acc,),
        space.Right: (space.Acc,),
        space.Acc: (space.DDR, space.Mat, space.Vec) if a5 else (space.DDR, space.Mat),
    }
    return Backend(backend_type, soc, paths)


@cache
def _instance(backend_type: BackendType) -> Backend:
    if backend_type is BackendType.Ascend950:
        return _make(backend_type, dies=2, clusters=18, vec=245760, acc=262144, bias=4096, scale=4096)
    return _make(backend_type, dies=1, clusters=24, vec=188416, acc=131072, bias=1024, scale=0)


class Backend910B:
    """Architecture a2a3."""

    @staticmethod
    def instance() -> Backend:
        """Return the one description."""
        return _instance(BackendType.Ascend910B)


class Backend950:
    """Architecture a5."""

    @staticmethod
    def instance() -> Backend:
        """Return the one description."""
        return _instance(BackendType.Ascend950)


def get_backend_instance(backend_type: BackendType | None = None) -> Backend:
    """Return the description of `backend_type`, by default of the backend that was set."""
    if backend_type is None:
        return _instance(default_backend_type())
    check_member("get_backend_instance: backend_type", backend_type, BackendType, "")
    return _instance(backend_type)
