# SPDX-License-Identifier: Apache-2.0
"""Convolutions as products of matrices (im2col), in the order of docs/simulate.md: with any number
of dimensions, strides, dilations and groups, ordinary and transposed.

Two tensors of a convolution are images: the wide one, (N, C, ...), and the narrow one, (N, K, ...).
Weights are (K, C / groups, ...). An ordinary convolution computes the narrow image from the wide
one, a transposed convolution the wide image from the narrow one.
"""

import itertools
import math
from typing import NamedTuple

import torch

_VALUES = 1 << 22    # most values that are gathered at a time
_MULTIPLE = 32       # numbers of windows are multiples of this, and so of each architecture's step


class _Geometry(NamedTuple):
    stride: tuple
    padding: tuple
    dilation: tuple
    groups: int

    def place(self, d, pixel, tap):
        """Returns the index in the wide image for a pixel of the narrow one and a tap, along d."""
        return pixel * self.stride[d] + tap * self.dilation[d] - self.padding[d]


def convolution(core, x, w, bias, stride, padding, dilation, transposed, output_padding, groups, *_):
    """Replaces torch.ops.aten.convolution."""
    how = _geometry(w.dim() - 2, stride, padding, dilation, groups)
    values, weights = core.rounded(x), core.rounded(w)
    if transposed:
        extents = [how.place(d, x.shape[2 + d] - 1, w.shape[2 + d] - 1) - how.padding[d] + 1 + more
                   for d, more in zip(range(w.dim() - 2), itertools.cycle(output_padding))]
        y = _to_wide(core, how, values, weights, extents)
    else:
        y = _to_narrow(core, how, values, weights)
    y = y.to(x.device)
    return y if bias is None else y + bias.reshape(-1, *[1] * (w.dim() - 2))


def convolution_gradients(core, dy, x, w, bias_sizes, stride, padding, dilation, transposed,
                          output_padding, groups, wanted):
    """Replaces torch.ops.aten.convolution_backward: returns the gradients of x, w and the bias."""
    how = _geometry(w.dim() - 2, stride, padding, dilation, groups)
    up, values = core.rounded(dy), core.rounded(x)
    dx = dw = db = None
    if wanted[0]:
        weights = core.rounded(w)
        dx = (_to_narrow(core, how, up, weights) if transposed else
              _to_wide(core, how, up, weights, x.shape[2:])).to(x.device)
    if wanted[1]:
        wide, narrow = (up, values) if transposed else (values, up)
        dw = _weight_gradient(core, how, wide, narrow, w.shape).to(w.device)
    if wanted[2]:
        db = dy.sum([0, *range(2, dy.dim())])
    return dx, dw, db


def _geometry(dimensions, stride, padding, dilation, groups):
    each = ((list(values) * dimensions)[:dimensions] for values in (stride, padding, dilation))
    return _Geometry(*(tuple(one) for one in each), groups)


class _Windows:
    """Windows of images as the rows of a matrix, in the order (image, row, column); the columns are
    (tap, channel). places: for each dimension, the index of the pixel for each (window, tap).
    Pixels outside the image are zero."""

    def __init__(self, images, places, groups):
        extents = images.shape[2:]
        padded = images.new_zeros(len(images), *(e + 1 for e in extents), images.shape[1])
        padded[(slice(None), *(slice(e) for e in extents))] = images.movedim(1, -1)
        self._pixels = padded.flatten(0, -2)
        self._extents = padded.shape[1:-1]
        self._places = [torch.where((p < 0) | (p >= e), e, p) for p, e in zip(places, extents)]
        self._groups = groups
        self.grid = [len(p) for p in places]
        self._count = len(images) * math.prod(self.grid)
        self.depth = math.prod(p.shape[1] for p in places) * images.shape[1] // groups

    def parts(self):
        """Returns ranges (first, last) of windows that are gathered together."""
        most = max(1, _VALUES // max(1, self.depth * self._groups) // _MULTIPLE) * _MULTIPLE
        return [(first, min(first + most, self._count)) for first in range(0, self._count, most)]

    def rows(self, first, last):
        """Returns the windows of a range: (groups, windows, depth)."""
        at, pixels, step = torch.arange(first, last), 0, 1
        for d in reversed(range(len(self.grid))):
            taps = self._places[d][at % self.grid[d]]
            after = len(self.grid) - 1 - d
            pixels = pixels + step * taps.reshape(-1, *[1] * d, taps.shape[1], *[1] * after)
            at = torch.div(at, self.grid[d], rounding_mode="floor")
            step *= self._extents[d]
        pixels = pixels + step * at.reshape(-1, *[1] * len(self.grid))
        values = self._pixels.index_select(0, pixels.flatten())
        values = values.reshape(last - first, -1, self._groups, values.shape[1] // self._groups)
        return values.permute(2, 0, 1, 3).reshape(self._groups, last - first, self.depth)


def _windows_product(core, windows, weights, images, groups):
    """Returns windows times weights, (N, grid..., columns). weights: (groups, depth, columns /
    groups). images: N."""
    out = torch.zeros(groups, images * math.prod(windows.grid), weights.shape[2])
    for first, last in windows.parts():
        core.add(windows.rows(first, last), weights, out[:, first:last])
    return out.permute(1, 0, 2).reshape(images, *windows.grid, groups * weights.shape[2])


def _to_narrow(core, how, wide, w):
    places = []
    for d, (extent, kernel) in enumerate(zip(wide.shape[2:], w.shape[2:])):
        count = (extent + 2 * how.padding[d] - how.dilation[d] * (kernel - 1) - 1) // how.stride[d] + 1
        places.append(how.place(d, torch.arange(count)[:, None], torch.arange(kernel)[None]))
    windows = _Windows(wide, places, how.groups)
    weights = w.movedim(1, -1).reshape(how.groups, -1, windows.depth).transpose(1, 2)
    return _windows_product(core, windows, weights, len(wide), how.groups).movedim(-1, 1).contiguous()


def _phases(how, d, extent, kernel):
    """Yields, along one dimension and for each phase of the stride, (pixels of the wide image, the
    taps that contribute to them, the pixels of the narrow image for each pixel and tap). Taps are
    in the order of ascending pixels of the narrow image."""
    stride, dilation, padding = how.stride[d], how.dilation[d], how.padding[d]
    for phase in range(stride):
        pixels = torch.arange((phase - padding) % stride, extent, stride)
        taps = torch.tensor([r for r in reversed(range(kernel)) if (r * dilation - phase) % stride == 0],
                            dtype=torch.long)
        if len(pixels) > 0 and len(taps) > 0:
            yield pixels, taps, torch.div(pixels[:, None] + padding - taps * dilation, stride,
                                          rounding_mode="floor")


def _to_wide(core, how, narrow, w, extents):
    out = torch.zeros(len(narrow), *extents, w.shape[1] * how.groups)
    phases = [list(_phases(how, d, extent, kernel))
              for d, (extent, kernel) in enumerate(zip(extents, w.shape[2:]))]
    for phase in itertools.product(*phases):
        pixels, taps, places = zip(*phase)
        windows = _Windows(narrow, places, how.groups)
        for d, chosen in enumerate(taps):
            taken = (w if d == 0 else taken).index_select(2 + d, chosen)
        weights = taken.reshape(how.groups, len(w) // how.groups, w.shape[1], -1)
        weights = weights.permute(0, 3, 1, 2).reshape(how.groups, windows.depth, -1)
        strided = tuple(slice(int(p[0]), None, how.stride[d]) for d, p in enumerate(pixels))
        out[(slice(None), *strided)] = _windows_product(core, windows, weights, len(narrow), how.groups)
    return out.movedim(-1, 1).contiguous()


def _weight_gradient(core, how, wide, narrow, shape):
    places = [how.place(d, torch.arange(count)[:, None], torch.arange(kernel)[None])
              for d, (count, kernel) in enumerate(zip(narrow.shape[2:], shape[2:]))]
    windows = _Windows(wide, places, how.groups)
    count = len(narrow) * math.prod(narrow.shape[2:])
    up = narrow.movedim(1, -1).reshape(count, how.groups, shape[0] // how.groups).permute(1, 2, 0)
    sums = torch.zeros(how.groups, shape[0] // how.groups, windows.depth)
    for first, last in windows.parts():  # continues the chain of sums of the part before
        core.add(up[:, :, first:last], windows.rows(first, last), sums)
    return sums.reshape(shape[0], *shape[2:], shape[1]).movedim(-1, 1).contiguous()
