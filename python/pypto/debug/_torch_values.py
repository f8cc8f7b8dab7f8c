# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: B905, F821  (older Python may run it; names come from the parts before it)
# pyright: reportUndefinedVariable=false, reportAttributeAccessIssue=false, reportOptionalMemberAccess=false
"""Values of emitted torch programs. This file is copied into every emitted module, so it imports torch only."""

import queue
import threading

import torch


class _Value:
    """A tensor or tile: `data` is a torch tensor (a view where the language says view), `valid` its valid extents."""

    def __init__(self, data, valid=None, tile=False):
        self.data = data
        self.valid = None if valid is None else tuple(int(v) for v in valid)
        self.tile = tile

    @property
    def shape(self):
        return tuple(self.data.shape)

    @property
    def dtype(self):
        return self.data.dtype

    def extents(self):
        """Return the valid extents."""
        return self.valid if self.valid is not None else self.shape

    def cells(self):
        """Return a view of the valid cells."""
        return self.data[tuple(slice(0, n) for n in self.extents())]

    def like(self, data, valid=None):
        """Return a new value of the same kind."""
        return _Value(data, self.valid if valid is None else valid, self.tile)

    def _index(self, key):
        key = key if isinstance(key, tuple) else (key,)
        key = tuple(
            slice(*(None if p is None else int(p) for p in (k.start, k.stop, k.step)))
            if isinstance(k, slice)
            else int(k)
            for k in key
        )
        return key

    def __getitem__(self, key):
        key = self._index(key)
        if len(key) == self.data.dim() and not any(isinstance(k, slice) for k in key):
            return self.data[key].item()
        valid = None
        if self.valid is not None:
            valid = []
            for axis, extent in enumerate(self.valid):
                k = key[axis] if axis < len(key) else slice(None)
                if isinstance(k, slice):
                    start, stop, _ = k.indices(self.data.shape[axis])
                    valid.append(max(0, min(extent - start, stop - start)))
        return _Value(self.data[key], valid, self.tile)

    def __setitem__(self, key, value):
        key = self._index(key)
        if isinstance(value, _Value):
            target = self.data[key]
            source = value.cells().to(self.data.dtype)
            target.reshape(-1)[:] = (
                source.reshape(-1)
                if target.is_contiguous() and target.numel() == source.numel()
                else target.reshape(-1)
            )
            if not (target.is_contiguous() and target.numel() == source.numel()):
                target[tuple(slice(0, n) for n in source.shape[-target.dim() :])] = source.reshape(
                    source.shape[-target.dim() :]
                )
        else:
            self.data[key] = value

    def __add__(self, other):
        return pl.add(self, other)

    def __radd__(self, other):
        return pl.add(other, self)

    def __sub__(self, other):
        return pl.sub(self, other)

    def __rsub__(self, other):
        return pl.sub(other, self)

    def __mul__(self, other):
        return pl.mul(self, other)

    def __rmul__(self, other):
        return pl.mul(other, self)

    def __truediv__(self, other):
        return pl.div(self, other)

    def __rtruediv__(self, other):
        return pl.div(other, self)


def _is_value(x):
    return isinstance(x, _Value)


def _data(x):
    return x.data if isinstance(x, _Value) else x


def _ints(values):
    return [int(v) for v in values]


def _scratch(shape, dtype):
    return torch.zeros(_ints(shape), dtype=dtype)


class _Depth(threading.local):
    value = 0


_depth = _Depth()


class _Block(threading.local):
    index = 0
    count = 1
    lane = 0


_block = _Block()


def _function(function):
    """Let a function be called with torch tensors from outside and with values from inside."""

    def call(*args):
        outside = _depth.value == 0
        _depth.value += 1
        try:
            result = function(*[_Value(a) if isinstance(a, torch.Tensor) else a for a in args])
        finally:
            _depth.value -= 1
        if not outside:
            return result
        if isinstance(result, tuple):
            return tuple(_data(r) for r in result)
        return _data(result)

    call.__name__ = function.__name__
    call._body = function
    return call


def _check(value, shape, dtype, name):
    """Assert that a value has the shape and type that the program says."""
    if isinstance(value, _Value):
        assert len(value.shape) == len(shape), f"{name}: rank {len(value.shape)}, expected {len(shape)}"
        for got, want in zip(value.shape, shape):
            assert want is None or got == want, f"{name}: shape {list(value.shape)}, expected {list(shape)}"
        assert dtype is None or value.dtype == dtype, f"{name}: {value.dtype}, expected {dtype}"
    return value


class _CrossCore:
    """Channels between the cube core and the two vector cores of a cluster, while a group runs."""

    def __init__(self):
        self._local = threading.local()

    def _pipes(self):
        return self._local.pipes

    def push_to_aiv(self, value, split=0, **_):
        for lane in (0, 1):
            self._pipes()["aiv", lane].put(_lane_part(value, split, lane))

    def push_to_aic(self, value, split=0, **_):
        self._pipes()["aic", _block.lane].put(value.like(value.data.clone()))

    def pop_from_aic(self, split=0, **_):
        return self._pipes()["aiv", _block.lane].get(timeout=60)

    def pop_from_aiv(self, split=0, **_):
        parts = [self._pipes()["aic", 0].get(timeout=60)]
        if self._local.lanes == 2:
            parts.append(self._pipes()["aic", 1].get(timeout=60))
        if len(parts) == 1 or split == 0:
            return parts[0]
        axis = 1 if split in (2, 4) else 0
        first, second = parts
        data = torch.cat([first.data, second.data], dim=axis)
        valid = list(first.extents())
        valid[axis] = first.extents()[axis] + second.extents()[axis]
        return _Value(data, valid, True)

    def run(self, members, lanes):
        """Run the members of a group side by side: the cube part once, the vector part on each lane."""
        pipes = {(kind, lane): queue.Queue() for kind in ("aic", "aiv") for lane in (0, 1)}
        results, errors, threads = {}, [], []

        def work(name, call, lane, block):
            self._local.pipes, self._local.lanes = pipes, lanes
            _block.index, _block.count, _block.lane = block[0], block[1], lane
            _depth.value = 1
            try:
                results[name, lane] = call()
            except BaseException as error:
                errors.append(error)

        block = (_block.index, _block.count)
        for name, call, is_vector in members:
            for lane in range(lanes if is_vector else 1):
                threads.append(threading.Thread(target=work, args=(name, call, lane, block), daemon=True))
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        if errors:
            raise errors[0]
        return [results[name, 0] for name, _, _ in members]


def _lane_part(value, split, lane):
    """Return what one vector lane receives of a tile."""
    if split == 0:
        return value.like(value.data.clone())
    axis = 1 if split in (2, 4) else 0
    size, valid = value.shape[axis], value.extents()[axis]
    half = (size + 1) // 2
    start, stop = (0, half) if lane == 0 else (half, size)
    keys = [slice(None)] * value.data.dim()
    keys[axis] = slice(start, stop)
    extents = list(value.extents())
    extents[axis] = max(0, min(valid - start, stop - start))
    return _Value(value.data[tuple(keys)].clone(), extents, True)


_cross_core_rt = _CrossCore()
