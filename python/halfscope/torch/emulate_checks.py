# SPDX-License-Identifier: Apache-2.0
"""Checks that raise for anything that emulate() cannot emulate, at its start or when it happens."""

import inspect

import torch
from torch.nn.parameter import UninitializedParameter


def require_optimizer(optimizer):
    """Raises TypeError unless there is one optimizer and its step() needs no closure."""
    if isinstance(optimizer, (list, tuple, dict)):
        raise TypeError(f"optimizer: found a {type(optimizer).__name__} of {len(optimizer)}, expected "
                        "one torch.optim.Optimizer: several optimizers are not emulated together; "
                        "give one of them parameter groups instead")
    closure = _parameters_of(getattr(optimizer, "step", None)).get("closure")
    if closure is not None and closure.default is inspect.Parameter.empty:
        raise TypeError(f"optimizer: {type(optimizer).__name__} needs a closure, which it calls "
                        "several times a step; that is not emulated. Use an optimizer whose step() "
                        "needs none, such as SGD or Adam")


def require_model(model, optimizer):
    """Raises TypeError or ValueError unless all parameters are in float32 and have values of their
    own, and all modules accept hooks."""
    for path, module in model.named_modules():
        if isinstance(module, torch.jit.ScriptModule):
            where = f"model: its module {path} is" if path else "model: found"
            raise TypeError(f"{where} a torch.jit.ScriptModule, expected a torch.nn.Module: what a "
                            "script computes inside cannot be rounded; give the module that it was "
                            "made from, before torch.jit.script or torch.jit.trace")
    own = dict(model.named_parameters())
    for name, parameter in own.items():
        if isinstance(parameter, UninitializedParameter):
            raise TypeError(f"model: parameter {name} has no values yet: a lazy module makes them "
                            "when it is first called; call the model once before emulate()")
        if torch.is_floating_point(parameter) and parameter.dtype != torch.float32:
            raise TypeError(f"model: parameter {name} is {_dtype_text(parameter)}, expected float32: "
                            "16-bit values are emulated in FP32 memory; call model.float() first")
        if any(step == 0 and size > 1 for step, size in zip(parameter.stride(), parameter.shape)):
            raise ValueError(f"model: elements of parameter {name} share memory (expand()), so that "
                             "no step can update them one by one; give the module a clone() of it")


class Known:
    """The modules and parameters when the context began. Later ones would not be emulated."""

    def __init__(self, model, optimizer):
        self._model = model
        self._optimizer = optimizer
        self._all = {id(one): one for one in self._now()}  # keeps them alive, so ids are unique

    def require(self, when):
        for one in self._now():
            if id(one) not in self._all:
                what = "a module" if isinstance(one, torch.nn.Module) else "a parameter"
                raise RuntimeError(f"{when}: {what} of the model or the optimizer, "
                                   f"{type(one).__name__}{_shape_text(one)}, was added inside "
                                   "emulate() and would not be emulated; add it before the context, "
                                   "or leave the context and enter another one")

    def _now(self):
        yield from self._model.modules()
        yield from self._model.parameters()
        for group in self._optimizer.param_groups:
            yield from group["params"]


def require_as_it_was(name, parameter, master):
    """Raises RuntimeError if a parameter's memory was replaced inside the context."""
    if (parameter.shape, parameter.dtype, parameter.device) != (master.shape, master.dtype,
                                                                master.device):
        raise RuntimeError(
            f"parameter {name} is {_dtype_text(parameter)}{_shape_text(parameter)} on "
            f"{parameter.device} now and was {_dtype_text(master)}{_shape_text(master)} on "
            f"{master.device} when emulate() began; change its type, shape or device before the "
            "context")


def _parameters_of(function):
    try:
        return inspect.signature(function).parameters
    except (TypeError, ValueError):
        return {}


def _dtype_text(tensor):
    return str(tensor.dtype).replace("torch.", "")


def _shape_text(one):
    return f" of shape {tuple(one.shape)}" if isinstance(one, torch.Tensor) else ""
