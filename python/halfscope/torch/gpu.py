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


def number_later(number):
    """Returns a number for number_of(). For a number on a GPU, starts the copy to the CPU."""
    if isinstance(number, torch.Tensor) and number.is_cuda:
        return HostCopy(number.reshape(1))
    return number


def number_of(number):
    """Returns a result of number_later() as a Python float. Waits for a copy."""
    return number.values()[0] if isinstance(number, HostCopy) else float(number)


def largest_of_group(parts):
    """Returns the largest magnitudes (may be infinity or NaN) of non-empty tensors of one GPU and
    dtype: one for all tensors or, in older versions of PyTorch, one for each."""
    if len(parts) == 1 or not hasattr(torch, "_foreach_norm"):
        return [torch.linalg.vector_norm(part, math.inf) for part in parts]
    return [torch.stack(torch._foreach_norm(parts, math.inf)).amax()]


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
    """Starts to count tensors on one GPU. pieces: (Gathered, tensor, computed). Each Gathered
    receives its counts when they are ready. Returns the largest magnitudes, for largest_of()."""
    device = pieces[0][1].get_device()
    stream = torch.cuda.current_stream(device).cuda_stream
    with torch.cuda.device(device):  # restores the thread's device, which the call changes
        return _halfscope.count_on_device(pieces, device, stream)
