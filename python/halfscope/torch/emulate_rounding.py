# SPDX-License-Identifier: Apache-2.0
"""Tensors rounded by the emulator: FP32 memory that holds 16-bit values.

All rounding is done by the C++ function `quantise` (halfscope/array/array.hpp).
"""

from typing import NamedTuple, Optional

import torch

from halfscope import _halfscope


class Precision(NamedTuple):
    """A row of `halfscope simulate --precision`."""

    format: Optional[str]  # format of tensors; None if nothing is rounded
    dtype: torch.dtype     # PyTorch's dtype for the format
    master: bool           # True if the optimizer updates FP32 master weights


PRECISIONS = {
    "fp32": Precision(None, torch.float32, False),
    "fp16": Precision("binary16", torch.float16, False),
    "mixed": Precision("binary16", torch.float16, True),
    "bf16": Precision("bfloat16", torch.bfloat16, False),
    "mixed-bf16": Precision("bfloat16", torch.bfloat16, True),
}


def round_(tensor, format):
    """Rounds an FP32 tensor in place and returns it. Autograd does not record it. Copies nothing if
    the values are in CPU memory without gaps. A sparse tensor must be coalesced."""
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
    """Returns a rounded copy."""
    tensor = tensor.detach()
    if tensor.layout == torch.sparse_coo:
        tensor = tensor.coalesce()  # adds duplicate entries before they are rounded
    return round_(tensor.clone(), format)


class Round(torch.autograd.Function):
    """Rounds a tensor, and the gradient that flows back from this use of it. The derivative of
    rounding is the identity. Derivatives of any order are rounded."""

    @staticmethod
    def forward(ctx, x, format):
        ctx.format = format
        return rounded(x, format)

    @staticmethod
    def backward(ctx, gradient):
        return Round.apply(gradient, ctx.format), None


class RoundOutput(torch.autograd.Function):
    """Rounds in the forward pass. In the backward pass a hook on the result rounds instead, so that
    hooks added later see the rounded gradient."""

    @staticmethod
    def forward(ctx, x, format):
        return rounded(x, format)

    @staticmethod
    def backward(ctx, gradient):
        return gradient, None


def _in_order_of_memory(values):
    """Returns the tensor with its dimensions in the order of memory, contiguous if its memory has
    no gaps, as for a channels-last or a transposed tensor."""
    order = sorted(range(values.dim()), key=values.stride, reverse=True)
    return values.permute(order)

