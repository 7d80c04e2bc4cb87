# SPDX-License-Identifier: Apache-2.0
"""Counts tensors on an NVIDIA GPU and copies numbers from it. Only values() waits, and only for
work that was queued before."""

import functools
import math
import warnings

import torch

from halfscope import _halfscope


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
    """Returns a number for number_of(). For a number on a GPU, starts the copy to the CPU."""
    if not (isinstance(number, torch.Tensor) and number.is_cuda):
        return number
    device, later = number.get_device(), None
    if counted_dtypes(device) and number.is_floating_point():
        later = _halfscope.number_on_device(number.detach(), device, _stream(device))
    return HostCopy(number.detach().reshape(1)) if later is None else later


def number_of(number):
    """Returns a result of number_later() as a Python float. Waits for a copy."""
    return number.values()[0] if isinstance(number, _LATER) else float(number)


def largest_of_group(parts):
    """Returns magnitudes, for largest_of(), of the present values of non-empty strided tensors of one GPU:
    one for all, by one kernel; one for each tensor that this kernel cannot read."""
    device, magnitudes = parts[0].get_device(), []
    if counted_dtypes(device):
        later, parts = _halfscope.largest_on_device(parts, device, _stream(device))
        magnitudes += [] if later is None else [later]
    return magnitudes + [torch.linalg.vector_norm(part, math.inf) for part in parts]


@functools.lru_cache(maxsize=None)
def counted_dtypes(device):
    """Returns the dtypes that can be counted on a GPU, given by its number. Empty unless halfscope
    was built with CUDA and the driver is new enough."""
    if not hasattr(_halfscope, "count_on_device"):
        return frozenset()
    try:
        probe = torch.zeros(1, device=f"cuda:{device}")
        count([(_halfscope.Gathered(), probe, None)])[0].values()
    except RuntimeError as error:
        warnings.warn("Recorder: tensors are copied to the CPU and counted there, which is slow: the "
                      f"GPU cannot be used ({error})", RuntimeWarning, stacklevel=2)
        return frozenset()
    return frozenset({torch.float16, torch.bfloat16, torch.float32})


def can_count(tensor):
    """Returns True if count() accepts the tensor after contiguous()."""
    return (tensor.is_cuda and tensor.layout is torch.strided and
            tensor.dtype in counted_dtypes(tensor.get_device()))


def count(pieces):
    """Starts to count tensors on one GPU: one kernel for all. pieces: (Gathered, tensor, computed). Each
    Gathered receives its counts when they are ready. Returns the largest magnitudes, for largest_of()."""
    device = pieces[0][1].get_device()
    return _halfscope.count_on_device(pieces, device, _stream(device))


def finish_counts():
    """Ends the counts that began since the last call. Their results are then read without waiting for what
    is queued later."""
    if hasattr(_halfscope, "finish_counts"):
        _halfscope.finish_counts()


def _stream(device):
    """Returns the address of the current stream of a GPU, given by its number."""
    return torch._C._cuda_getCurrentRawStream(device)
