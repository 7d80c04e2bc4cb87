# SPDX-License-Identifier: Apache-2.0
"""Tensors on an NVIDIA GPU: counted there, and numbers on their way from it. Nothing here waits for
the GPU but values(), and that not for what was queued behind."""

import functools
import math

import torch

from halfscope import _halfscope


class Sent:
    """Numbers on their way from a GPU to the CPU."""

    def __init__(self, numbers):
        """numbers: a tensor of one dimension"""
        self._there = torch.empty(numbers.shape, dtype=numbers.dtype, pin_memory=True)
        self._there.copy_(numbers, non_blocking=True)
        self._done = torch.cuda.current_stream(numbers.get_device()).record_event()

    def values(self):
        """As Python floats."""
        self._done.synchronize()
        return self._there.tolist()


def sent_number(number):
    """A number for number_of(); one of a GPU is on its way from now on."""
    if isinstance(number, torch.Tensor) and number.is_cuda:
        return Sent(number.reshape(1))
    return number


def number_of(number):
    """As a Python float."""
    return number.values()[0] if isinstance(number, Sent) else float(number)


def largest_together(parts):
    """The largest magnitudes, infinity and NaN among them, of tensors of one GPU and dtype that have
    values: by few kernels for all."""
    if len(parts) == 1 or not hasattr(torch, "_foreach_norm"):
        return [torch.linalg.vector_norm(part, math.inf) for part in parts]
    return [torch.stack(torch._foreach_norm(parts, math.inf)).amax()]


@functools.lru_cache(maxsize=None)
def _counted_dtypes():
    """Those that are counted on this machine's GPUs: where halfscope was built with CUDA, and their
    driver is new enough for it."""
    if not hasattr(_halfscope, "count_on_device"):
        return frozenset()
    try:
        count([(_halfscope.Gathered(), torch.zeros(1, device="cuda"), None)])[0].values()
    except RuntimeError:
        return frozenset()
    return frozenset({torch.float16, torch.bfloat16, torch.float32})


def is_counted(tensor):
    """Whether count() takes it, made contiguous."""
    return (tensor.is_cuda and tensor.layout is torch.strided and
            tensor.dtype in _counted_dtypes())


def count(pieces):
    """pieces: (Gathered, tensor, computed), of tensors on one GPU. Adds to each Gathered what will be
    counted; returns the largest magnitudes, as largest_of() takes them."""
    device = pieces[0][1].get_device()
    stream = torch.cuda.current_stream(device).cuda_stream
    return _halfscope.count_on_device(pieces, device, stream)
