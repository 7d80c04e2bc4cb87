# SPDX-License-Identifier: Apache-2.0
"""Prepares tensors for a log: largest magnitudes, and counts that are gathered over a step."""

import functools
import math

import torch

from halfscope._halfscope import largest_of_torch
from halfscope.torch import gpu

_PLAIN = (torch.Tensor, torch.nn.Parameter)


def local(tensor):
    """Returns the tensor detached; for a DTensor, this rank's part."""
    tensor = tensor.detach()
    if type(tensor) in _PLAIN or not hasattr(tensor, "to_local"):
        return tensor
    return tensor.to_local()


def plain(tensor):
    """Returns the values in CPU memory in C order. Copies only if they are elsewhere."""
    tensor = local(tensor)
    if tensor.layout != torch.strided:
        tensor = tensor.to_dense()
    if not tensor.is_cpu or not tensor.is_contiguous() or tensor.is_neg():
        tensor = tensor.cpu().contiguous().resolve_neg()
    return as_tensor(tensor)


def as_tensor(tensor):
    """Returns the tensor as a torch.Tensor instead of a subclass."""
    return tensor if type(tensor) in _PLAIN else tensor.as_subclass(torch.Tensor)


def kept(tensor):
    """Returns a copy of the values, in CPU memory."""
    tensor = local(tensor)
    values = plain(tensor)
    if tensor.layout != torch.strided:  # plain() made it dense, which copied it
        return values
    return values.clone() if values.data_ptr() == tensor.data_ptr() else values


def copies(tensors):
    """Returns copies of tensors where they are. On a GPU, one operation copies many."""
    if not all(tensor.is_cuda and tensor.layout is torch.strided for tensor in tensors):
        return [tensor.clone() for tensor in tensors]
    each = {}
    for i, tensor in enumerate(tensors):
        each.setdefault((tensor.get_device(), tensor.dtype), []).append(i)
    found = [None] * len(tensors)
    for those in each.values():
        for i, copy in zip(those, torch._foreach_mul([tensors[i] for i in those], 1)):
            found[i] = copy
    return found


def largest(tensor):
    """Returns the largest magnitude (may be infinity or NaN) as a tensor on the same device. Does
    not wait for the device. None if the tensor is empty."""
    tensor = local(tensor)
    if tensor.layout == torch.sparse_coo:
        tensor = tensor.coalesce().values()
    if tensor.numel() == 0:
        return None
    if tensor.is_cuda:
        return torch.linalg.vector_norm(tensor, math.inf)
    if tensor.dtype == torch.float16:
        tensor = tensor.float()  # PyTorch 1.13 has no aminmax for float16
    low, high = torch.aminmax(tensor)
    return torch.maximum(-low, high)


def largest_of(magnitudes):
    """Returns the largest of magnitudes as a Python float; None if there are none. A magnitude is a
    result of largest() or gather(): a float, tensor, HostCopy or Later. Waits for GPUs."""
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
    """Returns the magnitudes stacked into one tensor for each device and dtype."""
    each = {}
    for magnitude in magnitudes:
        each.setdefault((magnitude.device, magnitude.dtype), []).append(magnitude)
    return [torch.stack(those) for those in each.values()]


def largest_of_each(tensors):
    """Returns magnitudes, for largest_of(), of the tensors' present values: one for all tensors in
    CPU memory, one for all of a GPU, and some for others, on their devices."""
    magnitudes, others = gpu.largest_of_all(tensors)
    if not others:
        return magnitudes
    most, others = largest_of_torch(others)
    magnitudes += [] if most is None else [most]
    again = []
    for tensor in others:
        part = tensor if type(tensor) in _PLAIN else local(tensor)
        if type(part) is not type(tensor):  # the tensor is a DTensor
            again.append(part)
        elif (part.layout is torch.strided and not part.is_contiguous() and
              in_memory_order(part).is_contiguous()):
            again.append(in_memory_order(part))
        else:
            with torch.no_grad():
                magnitudes.append(largest(part))
    return magnitudes + (largest_of_each(again) if again else [])


def in_memory_order(tensor):
    """Returns a strided tensor with dimensions in memory order: contiguous if transposed before."""
    return tensor.permute(sorted(range(tensor.dim()), key=tensor.stride, reverse=True))


def copied_to_host(magnitudes):
    """Returns the magnitudes with copies from GPUs to the CPU started, for largest_of()."""
    on_gpu, others = [], []
    for magnitude in magnitudes:
        there = isinstance(magnitude, torch.Tensor) and magnitude.is_cuda
        (on_gpu if there else others).append(magnitude)
    return others + [gpu.HostCopy(stacked) for stacked in _stacked(on_gpu)]


class LargestGradient:
    """The largest magnitude over gradients. Gradients that do not limit the loss scale count only
    if they are infinite or NaN."""

    def __init__(self, parameters, gradients, bounds_scale, look=largest_of_each):
        """gradients: those of the parameters. bounds_scale(parameter): True if its gradient limits the
        loss scale. look: function that returns the magnitudes of a list of gradients."""
        bounding, others = [], []
        for parameter, gradient in zip(parameters, gradients):
            (bounding if bounds_scale(parameter) else others).append(gradient)
        self.bounding, self._others = (copied_to_host(look(those)) for those in (bounding, others))

    def value(self):
        """Returns a Python float; None if there are no gradients."""
        most = largest_of(self.bounding)
        other = largest_of(self._others) if self._others else None
        if other is None or math.isfinite(other):
            return most
        return other if most is None or math.isnan(other) else most + other


def gather(gathered, tensor, computed, keep=False):
    """Adds a tensor's present values to a Gathered; if `keep`, also a copy. computed: the dtype in
    which they were computed, or None. Returns their largest magnitude for largest_of()."""
    (magnitude,) = gather_each([(gathered, tensor, computed)], keep)
    return magnitude


def gather_each(pieces, keep=False):
    """Calls gather() for each (Gathered, tensor, computed); counts tensors on a GPU together."""
    magnitudes = gpu.count(pieces)
    for i, magnitude in enumerate(magnitudes):
        if magnitude is None:
            gathered, tensor, computed = pieces[i]
            magnitudes[i] = gathered.add(tensor, computed)
    others = [i for i, magnitude in enumerate(magnitudes) if magnitude is False]
    elsewhere = [(pieces[i][0], local(pieces[i][1]), pieces[i][2]) for i in others]
    for i, magnitude in zip(others, _gather_elsewhere(elsewhere)):
        magnitudes[i] = magnitude
    if keep:
        for gathered, tensor, _ in pieces:
            gathered.keep(kept(tensor))
    return magnitudes


def in_chunks(named, most=1 << 26):
    """Yields lists of (name, tensor): of at least `most` bytes on a GPU, else of one tensor."""
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
    """Gathers tensors that are not in C order in CPU memory or on a GPU: from a copy. Returns their
    magnitudes."""
    magnitudes = gpu.count([
        (gathered, as_tensor(tensor.contiguous()) if tensor.is_cuda and tensor.layout is torch.strided else tensor,
         computed) for gathered, tensor, computed in pieces])
    return [gathered.add(plain(tensor), computed) if magnitude is None else magnitude
            for magnitude, (gathered, tensor, computed) in zip(magnitudes, pieces)]


def values_of(gathered):
    """Returns the values that a Gathered has kept, in its shape."""
    pieces = gathered.kept
    if len(pieces) == 1:
        return pieces[0]
    dtype = functools.reduce(torch.promote_types, [piece.dtype for piece in pieces])
    return torch.cat([piece.to(dtype).reshape(-1) for piece in pieces]).reshape(gathered.shape)
