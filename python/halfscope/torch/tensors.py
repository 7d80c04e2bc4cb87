# SPDX-License-Identifier: Apache-2.0
"""Tensors on their way into a log: largest magnitudes, and what is gathered of one over a step."""

import math

import torch

from halfscope import _halfscope

# Names of types as safetensors writes them.
DTYPE_NAMES = {torch.float16: "F16", torch.bfloat16: "BF16", torch.float32: "F32",
               torch.float64: "F64"}


_PLAIN = (torch.Tensor, torch.nn.Parameter)


def local(tensor):
    """Detached; of a DTensor this rank's part."""
    tensor = tensor.detach()
    if type(tensor) in _PLAIN or not hasattr(tensor, "to_local"):
        return tensor
    return tensor.to_local()


def is_here(tensor):
    """Whether the values are in CPU memory in C order."""
    return (type(tensor) in _PLAIN and tensor.is_cpu and tensor.layout is torch.strided and
            tensor.is_contiguous())


def plain(tensor):
    """The values in CPU memory in C order, copied only where they are not there yet."""
    if is_here(tensor):
        return tensor
    tensor = local(tensor)
    if tensor.layout != torch.strided:
        tensor = tensor.to_dense()
    if tensor.is_cpu and tensor.is_contiguous():
        return tensor
    return tensor.cpu().contiguous()


def kept(tensor):
    """A copy of the values, in CPU memory."""
    tensor = local(tensor)
    values = plain(tensor)
    if tensor.layout != torch.strided:  # plain() made it dense: a copy, of what has no address
        return values
    return values.clone() if values.data_ptr() == tensor.data_ptr() else values


def largest(tensor):
    """The largest magnitude, where the tensor is: infinity and NaN are themselves. No waiting for
    the device. None when there is no value."""
    tensor = local(tensor)
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
    by_device, values = {}, []
    for magnitude in magnitudes:
        if isinstance(magnitude, float):
            values.append(magnitude)
        elif magnitude is not None:
            wide = torch.float64 if magnitude.dtype == torch.float64 else torch.float32
            by_device.setdefault((magnitude.device, wide), []).append(magnitude.to(wide))
    for each in by_device.values():
        values += torch.stack(each).tolist()  # one wait each
    if any(math.isnan(value) for value in values):
        return math.nan
    return max(values, default=None)


def largest_of_each(tensors):
    """Magnitudes that largest_of() takes, over tensors as they are now: of those in CPU memory one,
    by one call; of others one each, where they are."""
    magnitudes, here = [], []
    for tensor in tensors:
        if type(tensor) not in _PLAIN:
            tensor = local(tensor)
        if is_here(tensor):
            if count := tensor.numel():
                here.append((tensor.data_ptr(), count, DTYPE_NAMES[tensor.dtype]))
        else:
            magnitudes.append(largest(tensor))
    if here:
        magnitudes.append(_halfscope.largest_at(here))
    return magnitudes


class LargestGradient:
    """The largest magnitude over gradients. Those that bound no loss scale count where they are
    infinite or NaN. Stays on the device until it is asked for."""

    def __init__(self, gradients, bounds_scale, look=largest_of_each):
        """gradients: (parameter, its gradient), or what `look` makes a list of magnitudes of"""
        bounding, others = [], []
        for parameter, gradient in gradients:
            (bounding if bounds_scale(parameter) else others).append(gradient)
        self.bounding, self._others = look(bounding), look(others)

    def value(self):
        """As a Python float; None when there is none."""
        most, other = largest_of(self.bounding), largest_of(self._others)
        if other is None or math.isfinite(other):
            return most
        return other if most is None or math.isnan(other) else most + other


class Gathered:
    """One tensor of one step, in as many pieces as it was seen: several calls of a module, several
    microbatches. Their tables add; with keep=True the values are kept too."""

    __slots__ = ("table", "dtype", "computed", "sum_squares", "_shapes", "_values", "_finite", "_sum",
                 "_last_mean")

    def __init__(self):
        self.table = None
        self.dtype = None
        self.computed = None
        self._shapes = []
        self._values = []
        self._finite = self._sum = None  # of several pieces
        self.sum_squares = 0.0

    def add(self, tensor, computed, keep=False):
        """Returns the largest magnitude of what is added, as largest_of() takes it."""
        values = plain(tensor)
        table, mean, sum_squares, largest_here = _halfscope.measure_at(
            values.data_ptr(), values.numel(), DTYPE_NAMES[values.dtype])
        if self.table is None:
            self.table, self.dtype, self.computed = table, values.dtype, computed
        else:
            self._add_finite(mean * _finite_in(table), _finite_in(table))
            self._add_table(table, values.dtype, computed)
        self._shapes.append(values.shape)
        self.sum_squares += sum_squares
        self._last_mean = mean
        if keep:
            self._values.append(kept(tensor))
        return largest_here

    def join(self, later):
        """Adds the pieces of another one."""
        if self.table is None:
            for name in self.__slots__:
                setattr(self, name, getattr(later, name))
            return
        later._add_finite(0.0, 0)
        self._add_finite(later._sum, later._finite)
        self._add_table(later.table, later.dtype, later.computed)
        self._shapes += later._shapes
        self._values += later._values
        self.sum_squares += later.sum_squares
        self._last_mean = later._last_mean

    def _add_table(self, table, dtype, computed):
        if computed != self.computed:
            self.computed = None
        self.dtype = torch.promote_types(self.dtype, dtype)  # exact: the wider of the two
        self.table.merge(table)

    def _add_finite(self, total, finite):
        """To the sum and the number of finite values, before the table is added to. One piece has
        neither yet."""
        if self._sum is None:
            self._finite = _finite_in(self.table)
            self._sum = self._last_mean * self._finite
        self._sum += total
        self._finite += finite

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


def _finite_in(table):
    return table.total - table.nan - table.inf
