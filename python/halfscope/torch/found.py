# SPDX-License-Identifier: Apache-2.0
"""Finds the parts of a training loop among the objects of a running program."""

import gc
import sys

import torch

from halfscope.torch import names


def alive(kind):
    """Returns the objects of a class and its subclasses that exist, the oldest first."""
    return [thing for thing in gc.get_objects() if issubclass(type(thing), kind)]


def parameters_of(optimizer):
    """Returns the ids of an optimizer's parameters, in their order."""
    return list(dict.fromkeys(id(p) for group in optimizer.param_groups for p in group["params"]))


def parameters_in(module):
    """Returns the ids of a module's parameters."""
    return {id(parameter) for parameter in module.parameters()}


def model_of(optimizer, called=None):
    """Returns the model to record for an optimizer, or None if no module has its parameters.

    It is the called module if that one holds all parameters, else the smallest module that does. If
    none does, as for an encoder and a decoder that stand alone, it is a ModuleList of the outermost
    modules that hold some, in the order of the optimizer's parameters.
    """
    order = parameters_of(optimizer)
    wanted = set(order)
    if called is not None and wanted <= parameters_in(called):
        return called
    modules = [module for module in alive(torch.nn.Module) if "_parameters" in vars(module)]
    held = [(module, parameters_in(module) & wanted) for module in modules]
    whole = [module for module, found in held if found == wanted]
    if whole:
        return min(whole, key=lambda module: len(list(module.modules())))
    held = [(module, found) for module, found in held if found]
    inner = {id(part) for module, _ in held for part in module.modules() if part is not module}
    outer = sorted(((min(map(order.index, found)), module) for module, found in held
                    if id(module) not in inner), key=lambda pair: pair[0])
    parts = [names.unwrapped(module) for _, module in outer]
    return torch.nn.ModuleList(parts) if len(parts) > 1 else next(iter(parts), None)


def wrapper_of(optimizer):
    """Returns Accelerate's wrapper of an optimizer, or the optimizer itself without one."""
    if "accelerate.optimizer" in sys.modules:
        for wrapper in alive(sys.modules["accelerate.optimizer"].AcceleratedOptimizer):
            if getattr(wrapper, "optimizer", None) is optimizer:
                return wrapper
    return optimizer
