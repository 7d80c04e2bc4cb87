# SPDX-License-Identifier: Apache-2.0
"""Hooks on modules and on the tensors that they return."""

import torch

from halfscope._halfscope import Arrival, hook_on_device
from halfscope.torch.guard import Hook, traced
from halfscope.torch.names import is_recorded

# Before 2.0, all hooks of a tensor are attached to the operation that made the tensor when the
# first hook was added. After an in-place operation (ReLU(inplace=True)) that is wrong for a second
# hook.
_HOOKS_STAY_BEHIND = not hasattr(torch.autograd.graph, "Node")


class OutputHook(Hook):
    """The hook on a module that ModuleWatch watches."""

    def __init__(self, watch, guard, path):
        super().__init__(guard, watch.returned, path)
        self._watch = watch
        self._path = path
        self._arrival = self._microbatch = None

    def __call__(self, module, inputs, output):
        watch = self._watch
        if not watch.quick or traced():
            return super().__call__(module, inputs, output)
        if self._microbatch != watch.microbatch:
            self._microbatch = watch.microbatch
            self._arrival = Arrival(watch.arrivals, self._path, self._microbatch, None)
        if type(output) is torch.Tensor and is_recorded(output) and hook_on_device(output, self._arrival):
            return None
        return super().__call__(module, inputs, output)


def hook_tensor(tensor, hook):
    """Adds a hook on a tensor's gradient, after its other hooks. Returns the hook's handle."""
    if _HOOKS_STAY_BEHIND and not tensor.is_leaf and tensor._backward_hooks:
        tensor._backward_hooks = None  # the other hooks stay on the operation of their time
    return tensor.register_hook(hook)
