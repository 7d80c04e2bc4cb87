# SPDX-License-Identifier: Apache-2.0
"""How a recorded run keeps its values: as PyTorch says, or 16-bit values in FP32 memory."""

import torch


class Storage:
    """Values are what their tensors say."""

    def stored(self, role, tensor, computed, parameter=None):
        """A tensor and the type it was computed in, as the log is to have them. parameter: the one
        it belongs to; None for activations and their gradients."""
        return tensor, computed

    def updated(self, parameter):
        """What the optimizer updates."""
        return parameter.detach()

    def has_master(self, parameter):
        return False

    def bounds_scale(self, parameter):
        """Whether a finite gradient of this parameter can overflow where the loss scale grows."""
        return True


class EmulatedStorage(Storage):
    """FP32 memory that holds values of another type, where it does."""

    def __init__(self, precision, weights):
        self._precision = precision
        self._weights = weights

    def stored(self, role, tensor, computed, parameter=None):
        if not self._precision.format or (parameter is not None and not self._is_narrow(parameter)):
            return tensor, computed
        computed = self._precision.dtype
        if role == "optimizer_state" and self._precision.master:
            return tensor, torch.float32
        tensor = tensor.detach()
        if tensor.layout != torch.strided:
            tensor = tensor.to_dense()
        narrow = tensor.to(computed)
        same = narrow.to(tensor.dtype)
        exact = ((same == tensor) | (tensor != tensor)).all()
        return (narrow if exact else tensor), computed  # unscaled or clipped by the loop: FP32

    def updated(self, parameter):
        return self._weights.master(parameter)

    def has_master(self, parameter):
        return self._precision.master and self._is_narrow(parameter)

    def bounds_scale(self, parameter):
        return not self._precision.format or self._is_narrow(parameter)

    def _is_narrow(self, parameter):
        return id(parameter) in self._weights.narrow
