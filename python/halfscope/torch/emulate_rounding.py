# SPDX-License-Identifier: Apache-2.0
"""Tensors rounded by the emulator: FP32 memory that holds 16-bit values.

The one rounding function is C++'s `quantise` (halfscope/array/array.hpp); nothing here rounds
otherwise.
"""

from typing import NamedTuple, Optional

import torch

from halfscope import _halfscope


class Precision(NamedTuple):
    """A row of `halfscope simulate --precision`."""

    format: Optional[str]  # of tensors; None: nothing is rounded
    dtype: torch.dtype     # the same as PyTorch calls it
    master: bool           # whether what the optimizer updates is FP32


PRECISIONS = {
    "fp32": Precision(None, torch.float32, False),
    "fp16": Precision("binary16", torch.float16, False),
    "mixed": Precision("binary16", torch.float16, True),
    "bf16": Precision("bfloat16", torch.bfloat16, False),
    "mixed-bf16": Precision("bfloat16", torch.bfloat16, True),
}


def round_(tensor, format):
    """Rounds an FP32 tensor where it is; without a copy where its memory is the CPU's and has no
    gaps. Autograd does not hear of it. A sparse one is coalesced. Returns the tensor."""
    if format is None or tensor.numel() == 0:
        return tensor
    values = tensor.detach()
    if values.layout == torch.sparse_coo:
        round_(values.values(), format)
        return tensor
    memory = _in_order_of_memory(values)
    if values.device.type == "cpu" and memory.is_contiguous():
        _halfscope.round_values(memory, format)
    else:
        copy = values.cpu().contiguous()
        _halfscope.round_values(copy, format)
        with torch.no_grad():
            values.copy_(copy)
    return tensor


def rounded(tensor, format):
    """A rounded copy."""
    tensor = tensor.detach()
    if tensor.layout == torch.sparse_coo:
        tensor = tensor.coalesce()  # entries that are there twice are one value
    return round_(tensor.clone(), format)


class Round(torch.autograd.Function):
    """Rounds a tensor, and the gradient that this one use of it gives back. Derivatives take the
    rounding for the identity; those of any order are rounded."""

    @staticmethod
    def forward(ctx, x, format):
        ctx.format = format
        return rounded(x, format)

    @staticmethod
    def backward(ctx, gradient):
        return Round.apply(gradient, ctx.format), None


class RoundOutput(torch.autograd.Function):
    """Rounds on the way forward. On the way back a hook of the result does, so that others that
    are hooked behind it see what it made."""

    @staticmethod
    def forward(ctx, x, format):
        return rounded(x, format)

    @staticmethod
    def backward(ctx, gradient):
        return gradient, None


def _in_order_of_memory(values):
    """The tensor with its dimensions sorted, so that it is contiguous where its memory has no gaps:
    a channels-last tensor, or a transposed one, is."""
    order = sorted(range(values.dim()), key=values.stride, reverse=True)
    return values.permute(order)

