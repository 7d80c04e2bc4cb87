# SPDX-License-Identifier: Apache-2.0
"""Tensors on their way into a log: largest magnitudes, and what is gathered of one over a step."""

import functools
import math

import torch

from halfscope._halfscope import largest_of_torch
from halfscope.torch import gpu

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
    return as_tensor(tensor)


def as_tensor(tensor):
    """No subclass."""
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
    if tensor.is_cuda:
        return gpu.largest_of_group([tensor])[0]
    if tensor.dtype == torch.float16:
        tensor = tensor.float()  # PyTorch 1.13 has no aminmax for it
    low, high = torch.aminmax(tensor)
    return torch.maximum(-low, high)


def largest_of(magnitudes):
    """The largest of what largest() and its like gave, as a Python float; None when there is none.
    Waits for GPUs that have not said theirs yet."""
    values, on_device = [], []
    for magnitude in magnitudes:
        if isinstance(magnitude, torch.Tensor):
            on_device.append(magnitude)
        elif isinstance(magnitude, float):
            values.append(magnitude)
        elif magnitude is not None:
            values += magnitude.values()
    for stacked in _stacked(on_device):
        values += stacked.tolist()
    if any(math.isnan(value) for value in values):
        return math.nan
    return max(values, default=None)


def _stacked(magnitudes):
    """One tensor for each device and dtype."""
    each = {}
    for magnitude in magnitudes:
        each.setdefault((magnitude.device, magnitude.dtype), []).append(magnitude)
    return [torch.stack(those) for those in each.values()]


def largest_of_each(tensors):
    """Magnitudes that largest_of() takes, over tensors as they are now: of those in CPU memory one,
    by one call; of others where they are."""
    most, others = largest_of_torch(tensors)
    magnitudes = [] if most is None else [most]
    on_gpu = {}  # by device and dtype
    for tensor in others:
        part = tensor if type(tensor) in _PLAIN else local(tensor)
        if type(part) is not type(tensor):  # of a DTensor
            magnitudes += largest_of_each([part])
        elif part.is_cuda and part.layout is torch.strided and part.numel() != 0:
            on_gpu.setdefault((part.get_device(), part.dtype), []).append(part)
        elif (part.is_cpu and part.layout is torch.strided and not part.is_contiguous() and
              in_memory_order(part).is_contiguous()):
            magnitudes += largest_of_each([in_memory_order(part)])
        else:
            magnitudes.append(largest(part))
    with torch.no_grad():
        for parts in on_gpu.values():
            magnitudes += gpu.largest_of_group(parts)
    return magnitudes


def in_memory_order(tensor):
    """The values of a strided tensor with dimensions ordered as memory has them: a transposed one is
    contiguous then."""
    return tensor.permute(sorted(range(tensor.dim()), key=tensor.stride, reverse=True))


def copied_to_host(magnitudes):
    """The same for largest_of(), those of a GPU on their way to the CPU from now on."""
    on_gpu, others = [], []
    for magnitude in magnitudes:
        there = isinstance(magnitude, torch.Tensor) and magnitude.is_cuda
        (on_gpu if there else others).append(magnitude)
    return others + [gpu.HostCopy(stacked) for stacked in _stacked(on_gpu)]


class LargestGradient:
    """The largest magnitude over gradients. Those that bound no loss scale count where they are
    infinite or NaN."""

    def __init__(self, gradients, bounds_scale, look=largest_of_each):
        """gradients: (parameter, its gradient), or what `look` makes a list of magnitudes of"""
        bounding, others = [], []
        for parameter, gradient in gradients:
            (bounding if bounds_scale(parameter) else others).append(gradient)
        self.bounding, self._others = (copied_to_host(look(those)) for those in (bounding, others))

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
        (magnitude,) = _gather_elsewhere([(gathered, local(tensor), computed)])
    if keep:
        gathered.keep(kept(tensor))
    return magnitude


def gather_each(pieces, keep=False):
    """gather() of (Gathered, tensor, computed) each; tensors on a GPU are counted together."""
    magnitudes = [gathered.add(tensor, computed) for gathered, tensor, computed in pieces]
    others = [i for i, magnitude in enumerate(magnitudes) if magnitude is False]
    elsewhere = [(pieces[i][0], local(pieces[i][1]), pieces[i][2]) for i in others]
    for i, magnitude in zip(others, _gather_elsewhere(elsewhere)):
        magnitudes[i] = magnitude
    if keep:
        for gathered, tensor, _ in pieces:
            gathered.keep(kept(tensor))
    return magnitudes


def in_chunks(named, most=1 << 26):
    """Lists of (name, tensor): of tensors on a GPU so many that they reach `most` bytes, of others
    one."""
    chunk, size = [], 0
    for name, tensor in named:
        chunk.append((name, tensor))
        size += tensor.numel() * tensor.element_size()
        if size >= most or not tensor.is_cuda:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk


def _gather_elsewhere(pieces):
    """What is not in CPU memory in C order: counted on the GPU where it is there, else copied."""
    by_device, magnitudes = {}, [None] * len(pieces)
    for i, (gathered, tensor, computed) in enumerate(pieces):
        if gpu.can_count(tensor):
            piece = (gathered, as_tensor(tensor.contiguous()), computed)
            by_device.setdefault(tensor.get_device(), {})[i] = piece
        else:
            magnitudes[i] = gathered.add(plain(tensor), computed)
    for those in by_device.values():
        for i, magnitude in zip(those, _count(list(those.values()))):
            magnitudes[i] = magnitude
    return magnitudes


def _count(pieces):
    try:
        return gpu.count(pieces)
    except RuntimeError:  # PyTorch left no memory for it
        return [gathered.add(plain(tensor), computed) for gathered, tensor, computed in pieces]


def values_of(gathered):
    """The values that a Gathered has kept, in its shape."""
    pieces = gathered.kept
    if len(pieces) == 1:
        return pieces[0]
    dtype = functools.reduce(torch.promote_types, [piece.dtype for piece in pieces])
    return torch.cat([piece.to(dtype).reshape(-1) for piece in pieces]).reshape(gathered.shape)
