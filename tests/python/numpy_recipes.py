# SPDX-License-Identifier: Apache-2.0
"""NVFP4 and MXFP8 in NumPy, after the formulas of docs/numerics/recipes.md: each line is one
operation of binary32. Blocks run along the rows."""

import numpy as np

SIZES = np.float32([0, 0.5, 1, 1.5, 2, 3, 4, 6])
E2M1 = np.concatenate([SIZES, -SIZES])
_CODES = np.arange(127)
_E4M3 = np.where(_CODES < 8, _CODES * 2.0 ** -9, (8 + _CODES % 8) * 2.0 ** (_CODES // 8 - 10))


def e4m3(codes):
    """The values of codes from 0 to 126."""
    return _E4M3[codes].astype(np.float32)


def _nearest(sizes, values):
    """Places of the nearest of the sizes. The middle of two goes to the even place."""
    low = np.clip(np.searchsorted(sizes, values, side="right") - 1, 0, len(sizes) - 2)
    middle = (sizes[low].astype(float) + sizes[low + 1]) / 2
    return low + ((values > middle) | ((values == middle) & (low % 2 == 1)))


def nvfp4(x, tile=1):
    """Returns (codes, scales, decode scale) of blocks of tile x 16."""
    blocks = x.reshape(x.shape[0] // tile, tile, x.shape[1] // 16, 16)
    g = np.abs(x).max()
    enc = np.float32(2688) / g
    dec = np.float32(1) / enc
    b = np.abs(blocks).max(axis=(1, 3))
    scales = _nearest(_E4M3, np.minimum(b * (enc * (np.float32(1) / np.float32(6))), 448))
    with np.errstate(divide="ignore"):
        factor = np.minimum(np.float32(1) / (e4m3(scales) * dec), np.finfo(np.float32).max)
    y = blocks * factor[:, None, :, None]
    codes = _nearest(SIZES, np.minimum(np.abs(y), 6)) + 8 * np.signbit(y)
    return codes.reshape(x.shape), scales, dec


def nvfp4_values(x, tile=1):
    """Returns (codes times block scales, decode scale)."""
    codes, scales, dec = nvfp4(x, tile)
    spread = np.repeat(np.repeat(e4m3(scales), tile, axis=0), 16, axis=1)
    return E2M1[codes] * spread, dec


def mxfp8_floor(x):
    """Returns the values of blocks of 32 in E4M3, with OCP's scale."""
    blocks = x.astype(float).reshape(x.shape[0], -1, 32)
    scale = 2.0 ** (np.floor(np.log2(np.abs(blocks).max(-1, keepdims=True))) - 8)
    places = _nearest(_E4M3, np.minimum(np.abs(blocks / scale), 448))
    return (np.copysign(_E4M3[places], blocks) * scale).reshape(x.shape).astype(np.float32)
