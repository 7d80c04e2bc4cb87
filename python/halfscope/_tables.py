# SPDX-License-Identifier: Apache-2.0
"""Arrays to binade tables."""

from halfscope import _halfscope

# Types that DLPack and the buffer protocol cannot name: their bits travel as integers.
_AS_BITS = {
    "bfloat16": ("uint16", "BF16"),
    "float8_e4m3fn": ("uint8", "F8_E4M3"),
    "float8_e5m2": ("uint8", "F8_E5M2"),
}


def as_numbers(array):
    """Returns what the extension can look at, and the name of the type its bits are of, or None.

    Never copies. A PyTorch tensor is detached: its values are read, nothing is differentiated.
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
    return array, None


def binade_table(array, *, threads=0):
    """Counts an array's values by binade, in one pass and without copying it.

    array: of any shape; NumPy array, PyTorch CPU tensor or anything else that speaks DLPack or the
    buffer protocol; float16, bfloat16, float32 or float64 (OCP E4M3 and E5M2 too, where the package has
    them), in C order without gaps. Nothing is converted: other types raise TypeError, other layouts
    and other devices ValueError, with what to do. threads: 0 uses all cores.
    Returns a BinadeTable; docs/numerics/counting.md derives its counts.
    """
    numbers, dtype = as_numbers(array)
    return _halfscope.count_binades(numbers, dtype, threads)
