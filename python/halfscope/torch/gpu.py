# SPDX-License-Identifier: Apache-2.0
"""Tensors on an NVIDIA GPU: counted there, and numbers on their way from it. Only values() waits, and
only for what was queued before."""

import functools
import math
import warnings

import torch

from halfscope import _halfscope


class HostCopy:
    """Numbers of a GPU on their way to the CPU."""

    def __init__(self, numbers):
        """numbers: a tensor of one dimension"""
        self._copy = torch.empty(numbers.shape, dtype=numbers.dtype, pin_memory=True,
                                 device="cpu")  # whatever the default device is
        self._copy.copy_(numbers, non_blocking=True)
        self._done = torch.cuda.current_stream(numbers.get_device()).record_event()

    def values(self):
        """As Python floats."""
        self._done.synchronize()
        return self._copy.tolist()


def number_later(number):
    """A number for number_of(); one of a GPU is copied to the CPU from now on."""
    if isinstance(number, torch.Tensor) and number.is_cuda:
        return HostCopy(number.reshape(1))
    return number


def number_of(number):
    """As a Python float."""
    return number.values()[0] if isinstance(number, HostCopy) else float(number)


def largest_of_group(parts):
    """The largest magnitudes, infinity and NaN among them, of tensors of one GPU and dtype that have
    values: by few kernels for all."""
    if len(parts) == 1 or not hasattr(torch, "_foreach_norm"):
        return [torch.linalg.vector_norm(part, math.inf) for part in parts]
    return [torch.stack(torch._foreach_norm(parts, math.inf)).amax()]


@functools.lru_cache(maxsize=None)
def counted_dtypes(device):
    """Those that are counted on a GPU, by its number: where halfscope was built with CUDA, and its
    driver is new enough for it."""
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
    """Whether count() takes it, made contiguous."""
    return (tensor.is_cuda and tensor.layout is torch.strided and
            tensor.dtype in counted_dtypes(tensor.get_device()))


def count(pieces):
    """pieces: (Gathered, tensor, computed), of tensors on one GPU. Adds to each Gathered what will be
    counted; returns the largest magnitudes, as largest_of() takes them."""
    device = pieces[0][1].get_device()
    stream = torch.cuda.current_stream(device).cuda_stream
    with torch.cuda.device(device):  # the call sets the thread's device, which is the loop's too
        return _halfscope.count_on_device(pieces, device, stream)
