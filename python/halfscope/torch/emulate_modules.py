# SPDX-License-Identifier: Apache-2.0
"""Activations and their gradients under emulated precision: hooks on modules."""

import threading

import torch
from torch import nn

from halfscope.torch import names
from halfscope.torch.emulate_rounding import RoundInput, RoundOutput, rounded
from halfscope.torch.modules import Hook, hook_tensor
from halfscope.torch.tensors import largest

# Their parameters and statistics are FP32 in every precision, as cuDNN and autocast have them.
_NORMS = (nn.modules.batchnorm._NormBase, nn.LayerNorm, nn.GroupNorm,
          *([nn.RMSNorm] if hasattr(nn, "RMSNorm") else []))


def is_rounded(path, module):
    """Whether what this module without submodules reads and returns is rounded: not of a loss."""
    return not isinstance(module, nn.modules.loss._Loss)


def wide_parameters(model, keep_fp32):
    """Ids of the parameters that stay FP32."""
    wide, narrow = set(), set()
    for path, module in model.named_modules():
        stays = isinstance(module, _NORMS) or (keep_fp32 is not None and keep_fp32(path, module))
        own = {id(p) for p in module.parameters(recurse=False)}
        (wide if stays else narrow).update(own)
    return wide - narrow  # one that another kind of module has too is 16-bit


class Modules:
    """Hooks on a model's modules. With note=True the largest magnitude of every activation gradient
    is kept for take()."""

    def __init__(self, model, format, before_forward, note):
        self._model = model
        self._format = format
        self._note = note
        self._before_forward = before_forward
        self._handles = []
        self._lock = threading.Lock()  # backward runs on a thread a device
        self._magnitudes = []

    def start(self):
        self._handles.append(
            self._model.register_forward_pre_hook(Hook(lambda *_: self._before_forward())))
        for path, module in names.leaf_modules(self._model):
            if not is_rounded(path, module):
                continue
            # An operation that writes into its input must have that input itself, not a copy.
            if self._format and not getattr(module, "inplace", False):
                self._handles.append(module.register_forward_pre_hook(Hook(self._called)))
            self._handles.append(module.register_forward_hook(Hook(self._returned, path)))

    def stop(self):
        while self._handles:
            self._handles.pop().remove()
        self.take()

    def take(self):
        """Largest magnitudes of the activation gradients since, as they arrived."""
        with self._lock:
            magnitudes, self._magnitudes = self._magnitudes, []
        return magnitudes

    def _called(self, module, inputs):
        return mapped(self._round_input, inputs)

    def _returned(self, path, module, inputs, output):
        return mapped(lambda y: self._round_output(path, y), output)

    def _round_input(self, x):
        return RoundInput.apply(x, self._format) if x.dtype == torch.float32 else x

    def _round_output(self, path, output):
        if output.dtype != torch.float32:
            raise TypeError(
                f"{path} returned {str(output.dtype).replace('torch.', '')}, wanted float32: the "
                "emulation holds 16-bit values in FP32 memory; leave autocast off inside emulate(), "
                "and give it a model and inputs in float32")
        if self._format:
            output = RoundOutput.apply(output, self._format)
        if output.requires_grad and torch.is_grad_enabled() and (self._format or self._note):
            if output.is_leaf:
                output = output.view_as(output)  # a hook of ours must not stay on a parameter
            hook_tensor(output, Hook(self._gradient_arrived))
        return output

    def _gradient_arrived(self, gradient):
        if not self._handles:  # a graph that outlived the emulation
            return None
        if self._format:
            gradient = rounded(gradient, self._format)
        if self._note:
            magnitude = largest(gradient)
            with self._lock:
                self._magnitudes.append(magnitude)
        return gradient


def mapped(function, value):
    """The same structure with the function applied to the floating-point tensors in it."""
    if isinstance(value, torch.Tensor):
        return function(value) if torch.is_floating_point(value) else value
    if isinstance(value, dict):
        return type(value)({key: mapped(function, item) for key, item in value.items()})
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(mapped(function, item) for item in value))
    if isinstance(value, (tuple, list)):
        return type(value)(mapped(function, item) for item in value)
    return value
