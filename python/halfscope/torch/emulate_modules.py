# SPDX-License-Identifier: Apache-2.0
"""Activations and their gradients under emulated precision: hooks on modules."""

import threading

import torch
from torch import nn

from halfscope.torch import names
from halfscope.torch.emulate_fast_path import NoFastPath
from halfscope.torch.emulate_rounding import Round, RoundOutput
from halfscope.torch.emulate_values import mapped
from halfscope.torch.guard import Hook, call
from halfscope.torch.modules import hook_tensor
from halfscope.torch.tensors import largest

# Modules whose parameters and statistics stay FP32 in every precision, as in cuDNN and autocast.
_NORMS = (nn.modules.batchnorm._NormBase, nn.LayerNorm, nn.GroupNorm,
          *([nn.RMSNorm] if hasattr(nn, "RMSNorm") else []))

# Layers that compute with their own parameters. They count as one operation, with rounded inputs
# and outputs, even if a subclass has submodules (low-rank adapters).
_LAYERS = (nn.Linear, nn.Bilinear, nn.modules.conv._ConvNd, nn.Embedding, nn.EmbeddingBag,
           nn.RNNBase, nn.RNNCellBase, *_NORMS)


def is_rounded(path, module):
    """Returns True if inputs and outputs of a leaf module are rounded: all but losses."""
    return not isinstance(module, nn.modules.loss._Loss)


def rounded_modules(model):
    """Yields (path, module) for the modules whose inputs and outputs are rounded."""
    leaves = {id(module) for _, module in names.leaf_modules(model)}
    for path, module in model.named_modules():
        if (id(module) in leaves or isinstance(module, _LAYERS)) and is_rounded(path, module):
            yield path or "model", module


def wide_parameters(model, keep_fp32):
    """Returns the ids of the parameters that stay FP32."""
    wide, narrow = set(), set()
    for path, module in model.named_modules():
        stays = isinstance(module, _NORMS) or (keep_fp32 is not None and keep_fp32(path, module))
        own = {id(p) for p in module.parameters(recurse=False)}
        (wide if stays else narrow).update(own)
    return wide - narrow  # a parameter shared with a module that does not stay FP32 is 16-bit


class Modules:
    """Hooks on a model's modules. If note=True, the largest magnitudes of activation gradients that
    arrive while in_step is True are kept for take()."""

    def __init__(self, model, format, before_forward, note):
        self._model = model
        self._format = format
        self._note = note
        self.in_step = False
        self._fast_path = NoFastPath(model)
        self._before_forward = before_forward
        self._handles = []
        self._lock = threading.Lock()  # backward runs on a thread per device
        self._magnitudes = {}  # {device: largest magnitude}

    def start(self):
        self._fast_path.start()
        self._handles.append(
            self._model.register_forward_pre_hook(Hook(call, lambda *_: self._before_forward())))
        for path, module in rounded_modules(self._model):
            # An in-place operation must receive the input itself, not a rounded copy.
            if self._format and not getattr(module, "inplace", False):
                self._handles.append(module.register_forward_pre_hook(Hook(call, self._called)))
            self._handles.append(module.register_forward_hook(Hook(call, self._returned, path)))

    def stop(self):
        while self._handles:
            self._handles.pop().remove()
        self._fast_path.stop()
        self.take()

    def take(self):
        """Returns largest activation gradients since the last call, one per device."""
        with self._lock:
            magnitudes, self._magnitudes = self._magnitudes, {}
        return list(magnitudes.values())

    def _called(self, module, inputs):
        return mapped(self._round_input, inputs)

    def _returned(self, path, module, inputs, output):
        return mapped(lambda y: self._round_output(path, y), output)

    def _round_input(self, x):
        return Round.apply(x, self._format) if x.dtype == torch.float32 else x

    def _round_output(self, path, output):
        if output.dtype != torch.float32:
            raise TypeError(
                f"{path} returned {str(output.dtype).replace('torch.', '')}, expected float32: the "
                "emulation holds 16-bit values in FP32 memory; leave autocast off inside emulate(), "
                "and give it a model and inputs in float32")
        if self._format:
            output = RoundOutput.apply(output, self._format)
        if output.requires_grad and torch.is_grad_enabled() and (self._format or self._note):
            if output.is_leaf:
                output = output.view_as(output)  # the hook must not stay on a parameter
            hook_tensor(output, Hook(call, self._gradient_arrived))
        return output

    def _gradient_arrived(self, gradient):
        # Without handles, the emulation has ended, but a graph still exists. A gradient of None
        # means that none reached this output.
        if not self._handles or gradient is None:
            return None
        if self._format:
            gradient = Round.apply(gradient, self._format)
        magnitude = largest(gradient) if self._note and self.in_step else None
        if magnitude is not None:
            with self._lock:
                before = self._magnitudes.get(magnitude.device, magnitude)
                self._magnitudes[magnitude.device] = torch.maximum(before, magnitude)  # keeps NaN
        return gradient
