# SPDX-License-Identifier: Apache-2.0
"""How a recorded run stores its values: in their own dtypes, or as 16-bit values in FP32 memory."""

import torch


class Storage:
    """The storage of a normal run: values have the dtypes of their tensors."""

    def stored(self, role, tensor, computed, parameter=None):
        """Returns (tensor, dtype in which it was computed) for the log. parameter: the parameter to
        which the tensor belongs; None for activations and their gradients."""
        return tensor, computed

    def updated(self, parameter):
        """Returns the tensor that the optimizer updates."""
        return parameter.detach()

    def has_master(self, parameter):
        return False

    def bounds_scale(self, parameter):
        """Returns True if its finite gradients can overflow at a larger loss scale."""
        return True


class EmulatedStorage(Storage):
    """The storage of an emulated run: FP32 memory that may hold values of a 16-bit type."""

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
        return (narrow if exact else tensor), computed  # FP32 if unscaled or clipped by the loop

    def updated(self, parameter):
        return self._weights.master(parameter)

    def has_master(self, parameter):
        return self._precision.master and self._is_narrow(parameter)

    def bounds_scale(self, parameter):
        return not self._precision.format or self._is_narrow(parameter)

    def _is_narrow(self, parameter):
        return id(parameter) in self._weights.narrow
