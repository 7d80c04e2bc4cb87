# SPDX-License-Identifier: Apache-2.0
"""Counts arrays into binade tables."""

import contextlib

from halfscope import _halfscope

# Types without a name in DLPack and the buffer protocol; their bits are passed as integers.
_AS_BITS = {
    "bfloat16": ("uint16", "BF16"),
    "float8_e4m3fn": ("uint8", "F8_E4M3"),
    "float8_e5m2": ("uint8", "F8_E5M2"),
}


def as_numbers(array):
    """Returns (array that the extension can read, name of the type of its bits). The name is None
    if the array has its own dtype.

    Never copies. PyTorch tensors are detached from autograd.
    """
    dtype = str(getattr(array, "dtype", ""))
    if hasattr(array, "detach"):
        array = array.detach()
        if dtype.startswith("torch.float8"):
            stored, name = _AS_BITS.get(dtype[len("torch."):], (None, None))
            if name:
                import torch

                return array.view(getattr(torch, stored)), name
    elif dtype in _AS_BITS:  # ml_dtypes, as JAX and others use them
        stored, name = _AS_BITS[dtype]
        return array.view(stored), name
    elif not dtype and not hasattr(array, "__dlpack__"):
        with contextlib.suppress(TypeError):
            return memoryview(array), None  # ctypes gives a buffer without strides, memoryview has them
    return array, None


def binade_table(array, *, threads=0):
    """Counts an array's values by binade, in one pass and without copying it.

    array: NumPy array, PyTorch CPU tensor or any array that supports DLPack or the buffer protocol,
    of any shape; float16, bfloat16, float32 or float64 (also OCP E4M3 and E5M2, if the package has
    them), contiguous in C order. Nothing is converted: raises TypeError for other types, and
    ValueError for other layouts and devices, with advice. threads: 0 uses all cores. Returns a
    BinadeTable; docs/numerics/counting.md derives its counts.
    """
    numbers, dtype = as_numbers(array)
    return _halfscope.count_binades(numbers, dtype, threads)
