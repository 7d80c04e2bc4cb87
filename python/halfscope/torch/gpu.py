# SPDX-License-Identifier: Apache-2.0
"""Counts tensors on an NVIDIA GPU and copies numbers from it. Only values() waits, and only for
work that was queued before."""

import functools
import warnings

import torch

from halfscope import _halfscope


_ON_DEVICE = hasattr(_halfscope, "count_on_device")  # built with CUDA


class HostCopy:
    """An asynchronous copy of numbers from a GPU to the CPU."""

    def __init__(self, numbers):
        """numbers: a tensor with one dimension on a GPU"""
        self._copy = torch.empty(numbers.shape, dtype=numbers.dtype, pin_memory=True,
                                 device="cpu")  # whatever the default device is
        self._copy.copy_(numbers, non_blocking=True)
        self._done = torch.cuda.current_stream(numbers.get_device()).record_event()

    def values(self):
        """Waits for the copy and returns the numbers as Python floats."""
        self._done.synchronize()
        return self._copy.tolist()


_LATER = HostCopy, getattr(_halfscope, "Later", HostCopy)


def number_later(number):
    """Returns the present number for number_of(). For a number on a GPU, starts the copy to the CPU."""
    if not (isinstance(number, torch.Tensor) and number.is_cuda):
        return float(number)
    device, later = number.get_device(), None
    if _ON_DEVICE and is_counted_on(device) and number.is_floating_point():
        later = _halfscope.number_on_device(number.detach(), device, _current_stream(device))
    return HostCopy(number.detach().reshape(1)) if later is None else later


def number_of(number):
    """Returns a result of number_later() as a Python float. Waits for a copy."""
    return number.values()[0] if isinstance(number, _LATER) else float(number)


def largest_of_all(tensors):
    """Returns (magnitudes, for largest_of(): one for all tensors on a GPU, by one kernel; the tensors that this
    kernel cannot read, such as those in CPU memory)."""
    if _ON_DEVICE and any(tensor.is_cuda for tensor in tensors[:1]):
        return _halfscope.largest_on_device(tensors, _stream)
    return [], tensors


def count(pieces):
    """Starts to count tensors on GPUs: one kernel for all of a GPU. pieces: (Gathered, tensor, computed). Each
    Gathered receives its counts when they are ready. Returns the largest magnitudes, for largest_of(); None
    for tensors that cannot be counted so, such as those in CPU memory."""
    if _ON_DEVICE and any(piece[1].is_cuda for piece in pieces[:1]):
        return _halfscope.count_on_device(pieces, _stream)
    return [None] * len(pieces)


@functools.lru_cache(maxsize=None)
def is_counted_on(device):
    """Returns True if tensors can be counted on a GPU, given by its number: halfscope was built with CUDA and
    the driver is new enough."""
    try:
        probe = torch.zeros(1, device=f"cuda:{device}")
        ((later,), _) = _halfscope.largest_on_device([probe], _current_stream)
        later.values()
    except RuntimeError as error:
        warnings.warn("Recorder: tensors are copied to the CPU and counted there, which is slow: the "
                      f"GPU cannot be used ({error})", RuntimeWarning, stacklevel=2)
        return False
    return True


def finish_counts():
    """Ends the counts that began since the last call. Their results are then read without waiting for what
    is queued later."""
    if _ON_DEVICE:
        _halfscope.finish_counts()


def _current_stream(device):
    """Returns the address of the current stream of a GPU, given by its number."""
    return torch._C._cuda_getCurrentRawStream(device)


def _stream(device):
    return _current_stream(device) if is_counted_on(device) else None
