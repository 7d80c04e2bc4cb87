# SPDX-License-Identifier: Apache-2.0
"""Quantised checkpoints as their producers write them, packed and read with NumPy alone.

A format is a list of numbers, one for each code; nothing here shares code with the program.
"""

import json
import struct
from fractions import Fraction

import numpy as np


def write(path, tensors, metadata=None):
    """tensors: name to (dtype of safetensors, shape, bytes)."""
    header, data = {"__metadata__": metadata or {"format": "pt"}}, b""
    for name, (dtype, shape, held) in tensors.items():
        header[name] = {"dtype": dtype, "shape": list(shape)}
        header[name]["data_offsets"] = [len(data), len(data) + len(held)]
        data += held
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)
    return path


def tensor(array, dtype, shape=None):
    array = np.ascontiguousarray(array)
    return dtype, array.shape if shape is None else shape, array.tobytes()


def f32(array):
    return tensor(np.asarray(array, np.float32), "F32")


def bf16(array):
    """Values that bfloat16 holds exactly."""
    bits = np.asarray(array, np.float32).view(np.uint32)
    assert not (bits & 0xFFFF).any()
    return tensor((bits >> 16).astype(np.uint16), "BF16")


def numbers(exponent_bits, fraction_bits, bias, special="finite"):
    """The number of each code as a fraction; None for NaN and infinities."""
    out, top = [], 2 ** (exponent_bits + fraction_bits)
    for code in range(2 * top):
        exponent, fraction = divmod(code % top, 2**fraction_bits)
        significand = Fraction(fraction, 2**fraction_bits) + (exponent > 0)
        value = significand * Fraction(2) ** (max(exponent, 1) - bias)
        last = exponent == 2**exponent_bits - 1
        nan = {
            "finite": False,
            "fn": code % top == top - 1,
            "ieee": last,
            "fnuz": code == top,
        }[special]
        out.append(None if nan else -value if code >= top else value)
    return out


E2M1 = numbers(2, 1, 1)
E2M3 = numbers(2, 3, 1)
E3M2 = numbers(3, 2, 3)
E4M3 = numbers(4, 3, 7, "fn")
E5M2 = numbers(5, 2, 15, "ieee")
E4M3FNUZ = numbers(4, 3, 8, "fnuz")
E5M2FNUZ = numbers(5, 2, 16, "fnuz")


def floats(table):
    out = np.array([np.nan if n is None else float(n) for n in table], np.float32)
    if out[len(out) // 2] == 0:
        out[len(out) // 2] = -0.0  # the sign bit alone
    return out


def rounded(values, table):
    """The code nearest to each value; beyond the largest number, that one."""
    known = np.nan_to_num(floats(table).astype(np.float64), nan=np.inf)
    distance = np.abs(np.asarray(values, np.float64)[..., None] - known)
    return distance.argmin(-1).astype(np.uint8)


def nibbles(codes):
    """Two codes a byte, the first in the low bits."""
    return codes[..., 0::2] | codes[..., 1::2] << 4


def spread(scales, block, shape):
    """The scale of each value: `scales` repeated over blocks of (rows, columns)."""
    rows = np.repeat(scales, block[0], axis=-2)
    return np.repeat(rows, block[1], axis=-1)[..., : shape[-2], : shape[-1]]


def largest_of(values, block):
    """The largest magnitude of each block of a tensor, edges included."""
    *_, height, width = values.shape
    down, across = -(-height // block[0]), -(-width // block[1])
    return np.array(
        [
            [
                np.abs(
                    values[r * block[0] : (r + 1) * block[0], c * block[1] : (c + 1) * block[1]]
                ).max()
                for c in range(across)
            ]
            for r in range(down)
        ],
        np.float32,
    )


def quantised(values, table, block, factors):
    """Codes, and the values that they stand for, one multiplication of binary32 each."""
    factor = spread(factors.astype(np.float32), block, values.shape)
    with np.errstate(divide="ignore", invalid="ignore"):
        codes = rounded(np.where(factor == 0, 0, values / factor), table)
    return codes, floats(table)[codes] * factor


def losses(reference, stored, table, factors, block):
    """Vanished and clipped blocks by their definitions, in exact arithmetic."""
    finite = sorted({abs(n) for n in table if n is not None})
    limit = finite[-1] + (finite[-1] - finite[-2]) / 2
    vanished = clipped = 0
    for (r, c), factor in np.ndenumerate(factors):
        where = (
            slice(r * block[0], (r + 1) * block[0]),
            slice(c * block[1], (c + 1) * block[1]),
        )
        x, y = reference[where].ravel(), stored[where].ravel()
        vanished += not y.any() and x.any()
        top = np.float32(float(finite[-1])) * np.float32(abs(factor))
        exact = Fraction(float(abs(factor)))
        clipped += any(
            top != 0 and abs(b) == top and Fraction(float(abs(a))) > limit * exact
            for a, b in zip(x, y)
        )
    return int(vanished), int(clipped)
