# SPDX-License-Identifier: Apache-2.0
"""What tensors are called in a run log: role/<module path>[.<parameter or output index>]."""

import torch

# Types that are recorded; others are no weights or activations, or need care of their own.
_RECORDED = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
# Wrappers that put a prefix before every path and are no part of the network.
_WRAPPERS = {"DistributedDataParallel": "module", "DataParallel": "module",
             "OptimizedModule": "_orig_mod"}


def unwrapped(model):
    """The network itself, inside wrappers that only run it."""
    while type(model).__name__ in _WRAPPERS:
        model = getattr(model, _WRAPPERS[type(model).__name__])
    return model


def parameters(model, optimizer):
    """{name: parameter}, each parameter once: the model's in its order, then those that only the
    optimizer knows, as optimizer.<group>.<index>."""
    named = dict(model.named_parameters())  # a shared parameter has its first name
    known = {id(parameter) for parameter in named.values()}
    for g, group in enumerate(optimizer.param_groups):
        for i, parameter in enumerate(group["params"]):
            if id(parameter) not in known:
                named[f"optimizer.{g}.{i}"] = parameter
    return {name: p for name, p in named.items() if p.dtype in _RECORDED}


def leaf_modules(model):
    """(path, module) of modules that have no submodules: where activations are looked at. What
    parametrizes a weight is no part of a layer, and attention calls no submodule."""
    for path, module in model.named_modules():
        parts = {name for name, _ in module.named_children()}
        if parts <= {"parametrizations"} or isinstance(module, torch.nn.MultiheadAttention):
            yield path or "model", module


def outputs(path, output):
    """(name, tensor) of the floating-point tensors in what a module returned. One tensor has the
    module's path; several have their index or key behind it."""
    if isinstance(output, torch.Tensor):
        if output.dtype in _RECORDED:
            yield path, output
    elif isinstance(output, dict):
        for key, item in output.items():
            yield from outputs(f"{path}.{key}", item)
    elif isinstance(output, (tuple, list)):
        for index, item in enumerate(output):
            yield from outputs(f"{path}.{index}", item)
