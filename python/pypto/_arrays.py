# SPDX-License-Identifier: Apache-2.0
"""Arrays over memory that the core owns or shares; called by the native side."""

_NUMPY_NAMES = {
    "fp32": "float32", "fp16": "float16", "int8": "int8", "int16": "int16", "int32": "int32", "int64": "int64",
    "index": "int64", "uint8": "uint8", "uint16": "uint16", "uint32": "uint32", "uint64": "uint64", "bool": "bool",
    "task_id": "int64",
}  # fmt: skip
_ML_NAMES = {
    "bfloat16": ("bfloat16", "uint16"),
    "fp8e4m3fn": ("float8_e4m3fn", "uint8"),
    "fp8e5m2": ("float8_e5m2", "uint8"),
    "fp8e8m0": ("float8_e8m0fnu", "uint8"),
}
_TORCH_NAMES = {
    **_NUMPY_NAMES,
    "bfloat16": "bfloat16", "fp8e4m3fn": "float8_e4m3fn", "fp8e5m2": "float8_e5m2", "fp8e8m0": "float8_e8m0fnu",
}  # fmt: skip


def numpy_dtype(dtype):
    """NumPy dtype for a DataType; of ml_dtypes where it is installed, else the carrier."""
    import numpy as np

    text = str(dtype)
    if text in _ML_NAMES:
        name, carrier = _ML_NAMES[text]
        try:
            import ml_dtypes
        except ImportError:
            return np.dtype(carrier)
        return np.dtype(getattr(ml_dtypes, name, carrier))
    return np.dtype(_NUMPY_NAMES.get(text, "uint8"))


def torch_dtype(dtype):
    """torch dtype for a DataType, or the carrier where torch lacks it."""
    import torch

    name = _TORCH_NAMES.get(str(dtype), "uint8")
    found = getattr(torch, name, None)
    if found is None:
        found = getattr(torch, {"uint16": "int16", "uint32": "int32", "uint64": "int64"}.get(name, "uint8"))
    return found


class _Owner:
    """Exports memory to NumPy and keeps whatever owns it alive."""

    __slots__ = ("__array_interface__", "keep", "memory")

    def __init__(self, memory, keep):
        import ctypes

        address = ctypes.addressof(ctypes.c_char.from_buffer(memory)) if len(memory) else 0
        self.__array_interface__ = {"version": 3, "typestr": "|u1", "shape": (len(memory),), "data": (address, False)}
        self.memory = memory
        self.keep = keep


def _bytes(memory, keep):
    import numpy as np

    return np.frombuffer(memory, np.uint8) if keep is None else np.asarray(_Owner(memory, keep))


def numpy_view(memory, dtype, shape, strides, keep):
    """A NumPy array over ``memory``; ``strides`` count elements."""
    import numpy as np

    dt = numpy_dtype(dtype)
    return np.ndarray(shape, dt, buffer=_bytes(memory, keep), strides=[s * dt.itemsize for s in strides])


def torch_view(memory, dtype, shape, strides, keep):
    """A torch tensor over ``memory``; ``strides`` count elements."""
    import torch

    dt = torch_dtype(dtype)
    if len(memory) == 0:
        return torch.empty(list(shape), dtype=dt)
    flat = torch.frombuffer(memory, dtype=dt) if keep is None else torch.from_numpy(_bytes(memory, keep)).view(dt)
    return flat.as_strided(list(shape), list(strides))
