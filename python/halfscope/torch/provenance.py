# SPDX-License-Identifier: Apache-2.0
"""The dtype in which values were computed, which can differ from the dtype in which they are
stored.

Under autocast, the gradient of a float32 weight is a copy of a 16-bit result: values that
underflowed are already zero. None stands for an unknown dtype; the analyzers then look at the
values themselves.
"""

import torch
from torch import nn

# Modules with operations that autocast runs in 16 bits, so that the gradients of their parameters
# are 16-bit results too.
_LOWERED = (nn.Linear, nn.Bilinear, nn.modules.conv._ConvNd, nn.RNNBase, nn.RNNCellBase, nn.PReLU)
# Modules whose kernels compute gradients in the parameters' own dtype.
_KEPT = (nn.modules.batchnorm._NormBase, nn.LayerNorm, nn.GroupNorm, nn.Embedding, nn.EmbeddingBag)


_ASKS_BY_DEVICE = hasattr(torch, "get_autocast_dtype")  # 2.4 and later


def autocast_dtype(device_type):
    """Returns the dtype to which autocast casts on a kind of device. None if autocast is off."""
    if _ASKS_BY_DEVICE:
        enabled = torch.is_autocast_enabled(device_type)
        return torch.get_autocast_dtype(device_type) if enabled else None
    if device_type == "cpu":
        return torch.get_autocast_cpu_dtype() if torch.is_autocast_cpu_enabled() else None
    return torch.get_autocast_gpu_dtype() if torch.is_autocast_enabled() else None


def autocast_now(model):
    """Returns {kind of device: autocast_dtype()} for the model's devices."""
    return {device: autocast_dtype(device) for device in {p.device.type for p in model.parameters()}}


class Provenance:
    """Finds the dtypes of gradients in one step from the outputs of modules."""

    def __init__(self):
        self.called = False  # True once a call of the model or of one of its modules was seen
        self.casts = {}  # {kind of device: dtype to which autocast cast, if it was on}
        self._computed = {}  # {id of a parameter: dtype; None if unknown or contradictory}

    def activation_grad(self, output, cast):
        """Returns the dtype in which the gradient of an output is computed. None (unknown) if the
        output is wider than autocast's dtype, since an operation may cast it to 16 bits."""
        return output.dtype if cast is None or output.dtype == cast else None

    def see(self, module, output, cast):
        """Called after each call of a module without submodules, with one of its outputs. cast: the
        dtype to which autocast casts there, or None."""
        self.called = True
        if cast is not None:
            self.casts[output.device.type] = cast
        for parameter in module._parameters.values():  # parameters() is ten times slower
            if parameter is None:
                continue
            computed = self._of_parameter(module, parameter, output, cast)
            if self._computed.setdefault(id(parameter), computed) != computed:
                self._computed[id(parameter)] = None

    def _of_parameter(self, module, parameter, output, cast):
        if isinstance(module, _KEPT):
            return parameter.dtype
        if cast is None:  # the module itself may cast inside
            return parameter.dtype if output.dtype == parameter.dtype else None
        if isinstance(module, _LOWERED) and output.dtype == cast:
            return cast
        return None

    def weight_grad(self, parameter):
        """Returns the dtype in which a parameter's gradient was computed. None if unknown."""
        if id(parameter) in self._computed:
            return self._computed[id(parameter)]
        return parameter.dtype if self.called and not self.casts else None
