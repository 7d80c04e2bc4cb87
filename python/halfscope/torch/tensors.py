# SPDX-License-Identifier: Apache-2.0
"""Tensors on their way into a log: largest magnitudes, and what is gathered of one over a step."""

import math

import torch

from halfscope import _halfscope
from halfscope._tables import as_numbers

# Names of types as safetensors writes them.
DTYPE_NAMES = {torch.float16: "F16", torch.bfloat16: "BF16", torch.float32: "F32",
               torch.float64: "F64"}


def plain(tensor):
    """The values in CPU memory in C order, copied only where they are not there yet."""
    tensor = tensor.detach()
    if tensor.layout != torch.strided:
        tensor = tensor.to_dense()
    return tensor.cpu().contiguous()


def kept(tensor):
    """A copy of the values, in CPU memory."""
    values = plain(tensor)
    if tensor.layout != torch.strided:  # plain() made it dense: a copy, of what has no address
        return values
    return values.clone() if values.data_ptr() == tensor.data_ptr() else values


def largest(tensor):
    """The largest magnitude, where the tensor is: infinity and NaN are themselves. No waiting for
    the device. None when there is no value."""
    tensor = tensor.detach()
    if tensor.layout == torch.sparse_coo:
        tensor = tensor.coalesce().values()
    if tensor.numel() == 0:
        return None
    if tensor.dtype == torch.float16 and tensor.device.type == "cpu":
        tensor = tensor.float()  # PyTorch 1.13 has no aminmax for it
    low, high = torch.aminmax(tensor)
    return torch.maximum(-low, high)


def largest_of(magnitudes):
    """The largest of what largest() gave, as a Python float; None when there is none."""
    by_device = {}
    for magnitude in magnitudes:
        if magnitude is not None:
            wide = torch.float64 if magnitude.dtype == torch.float64 else torch.float32
            by_device.setdefault((magnitude.device, wide), []).append(magnitude.to(wide))
    values = [v for each in by_device.values() for v in torch.stack(each).tolist()]  # one wait each
    if any(math.isnan(value) for value in values):
        return math.nan
    return max(values, default=None)


class LargestGradient:
    """The largest magnitude over the gradients. Those that bound no loss scale count where they are
    infinite or NaN. Stays on the device until it is asked for."""

    def __init__(self, parameters, bounds_scale):
        self._bounding, self._others = [], []
        for parameter in parameters:
            if parameter.grad is not None:
                which = self._bounding if bounds_scale(parameter) else self._others
                which.append(largest(parameter.grad))

    def value(self):
        """As a Python float; None when there is none."""
        most, other = largest_of(self._bounding), largest_of(self._others)
        if other is None or math.isfinite(other):
            return most
        return other if most is None or math.isnan(other) else most + other


class Gathered:
    """One tensor of one step, in as many pieces as it was seen: several calls of a module, several
    microbatches. Their tables add; with keep=True the values are kept too."""

    def __init__(self):
        self.table = _halfscope.BinadeTable()
        self.dtype = None
        self.computed = None
        self._shapes = []
        self._values = []
        self._finite = 0
        self._sum = 0.0
        self.sum_squares = 0.0

    def add(self, tensor, computed, keep=False):
        values = plain(tensor)
        table, mean, sum_squares, _ = _halfscope.measure(*as_numbers(values))
        finite = table.total - table.nan - table.inf
        if self.dtype is None:
            self.dtype, self.computed = values.dtype, computed
        elif computed != self.computed:
            self.computed = None
        self.dtype = torch.promote_types(self.dtype, values.dtype)  # exact: the wider of the two
        self.table.merge(table)
        self._shapes.append(tuple(values.shape))
        self._finite += finite
        self._sum += mean * finite
        self.sum_squares += sum_squares
        self._last_mean = mean
        if keep:
            self._values.append(kept(tensor))

    def join(self, later):
        """Adds the pieces of another one."""
        if self.dtype is None:
            self.dtype, self.computed = later.dtype, later.computed
        elif later.computed != self.computed:
            self.computed = None
        self.dtype = torch.promote_types(self.dtype, later.dtype)
        self.table.merge(later.table)
        self._shapes += later._shapes
        self._values += later._values
        self._finite += later._finite
        self._sum += later._sum
        self.sum_squares += later.sum_squares
        self._last_mean = later._last_mean

    @property
    def pieces(self):
        return len(self._shapes)

    @property
    def mean(self):
        if len(self._shapes) == 1:
            return self._last_mean
        return self._sum / self._finite if self._finite else 0.0

    @property
    def shape(self):
        """Of one piece, its own; of several alike, their number first; else how many values."""
        if len(self._shapes) == 1:
            return self._shapes[0]
        if len(set(self._shapes)) == 1:
            return (len(self._shapes), *self._shapes[0])
        return (self.table.total,)

    def values(self):
        """The kept values in that shape."""
        pieces = [piece.to(self.dtype).reshape(-1) for piece in self._values]
        return torch.cat(pieces).reshape(self.shape)
