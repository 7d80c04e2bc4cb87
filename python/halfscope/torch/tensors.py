# SPDX-License-Identifier: Apache-2.0
"""Tensors on their way into a log: largest magnitudes, and what is gathered of one over a step."""

import functools
import math

import torch

from halfscope._halfscope import largest_of_torch

_PLAIN = (torch.Tensor, torch.nn.Parameter)


def local(tensor):
    """Detached; of a DTensor this rank's part."""
    tensor = tensor.detach()
    if type(tensor) in _PLAIN or not hasattr(tensor, "to_local"):
        return tensor
    return tensor.to_local()


def plain(tensor):
    """The values in CPU memory in C order, copied only where they are not there yet."""
    tensor = local(tensor)
    if tensor.layout != torch.strided:
        tensor = tensor.to_dense()
    if not tensor.is_cpu or not tensor.is_contiguous():
        tensor = tensor.cpu().contiguous()
    return tensor if type(tensor) in _PLAIN else tensor.as_subclass(torch.Tensor)


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
    most, others = largest_of_torch(tensors)
    magnitudes = [] if most is None else [most]
    for tensor in others:
        part = local(tensor)
        if type(part) is type(tensor):
            magnitudes.append(largest(part))
        else:  # of a DTensor
            magnitudes += largest_of_each([part])
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
        most = largest_of(self.bounding)
        other = largest_of(self._others) if self._others else None
        if other is None or math.isfinite(other):
            return most
        return other if most is None or math.isnan(other) else most + other


def gather(gathered, tensor, computed, keep=False):
    """Adds what a tensor holds now to a Gathered, and with keep a copy of the values. Returns the
    largest magnitude of what is added, as largest_of() takes it."""
    magnitude = gathered.add(tensor, computed)
    if magnitude is False:  # it is not in CPU memory in C order
        magnitude = gathered.add(plain(tensor), computed)
    if keep:
        gathered.keep(kept(tensor))
    return magnitude


def values_of(gathered):
    """The values that a Gathered has kept, in its shape."""
    pieces = gathered.kept
    if len(pieces) == 1:
        return pieces[0]
    dtype = functools.reduce(torch.promote_types, [piece.dtype for piece in pieces])
    return torch.cat([piece.to(dtype).reshape(-1) for piece in pieces]).reshape(gathered.shape)
