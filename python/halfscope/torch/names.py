# SPDX-License-Identifier: Apache-2.0
"""Names of tensors in a run log: role/<module path>[.<parameter or output index>]."""

import torch

from halfscope.torch.sharding import is_distributed

_is_transformed = torch._C._functorch.is_functorch_wrapped_tensor
# Dtypes that are recorded. Other dtypes are not weights or activations, or need special treatment.
_RECORDED = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
COMPILED = ("torch.compile compiles the model: weights, weight gradients and updates are recorded, "
            "activations and their gradients are not, since hooks on modules would break the compiled "
            "graph. To record them, record some steps of the model that is not compiled")

# {wrapper that adds a prefix to every path: its attribute with the wrapped module}
_WRAPPERS = {"DistributedDataParallel": "module", "DataParallel": "module",
             "OptimizedModule": "_orig_mod"}


def _layers(model):
    """Yields the model and the modules that its wrappers wrap; the network itself is the last."""
    yield model
    while type(model).__name__ in _WRAPPERS:
        model = getattr(model, _WRAPPERS[type(model).__name__])
        yield model


def unwrapped(model):
    """Returns the network inside all wrappers."""
    *_, network = _layers(model)
    return network


def is_compiled_whole(model):
    return any(_is_compiled(layer) for layer in _layers(model))


def called(model):
    """Returns the module whose calls a hook can see: the network or, if it is compiled, the module
    that the loop calls. None if that module compiles itself (module.compile())."""
    if not is_compiled_whole(model):
        return unwrapped(model)
    return None if getattr(model, "_compiled_call_impl", None) is not None else model


def _is_compiled(module):
    return (type(module).__name__ == "OptimizedModule" or
            getattr(module, "_compiled_call_impl", None) is not None)


def is_compiled(model):
    """Returns True if torch.compile() or module.compile() compiles a part of the model."""
    return any(_is_compiled(module) for module in model.modules())


def is_readable(tensor):
    """Returns True if a tensor's memory holds its values: not inside torch.func's transforms, and
    not for subclasses with operations of their own (they hold other tensors, or none, as
    FakeTensor), except DTensor, whose local part is read."""
    if type(tensor) is torch.Tensor:  # the most frequent case; the checks below are slow
        return not _is_transformed(tensor)
    if is_distributed(tensor):
        return True
    return (type(tensor).__torch_dispatch__ == torch.Tensor.__torch_dispatch__ and
            not _is_transformed(tensor))


def is_recorded(tensor):
    """Returns True for readable tensors of the floating-point types that are recorded."""
    return tensor.dtype in _RECORDED and is_readable(tensor)


def parameters(model, optimizer):
    """Returns {name: parameter}, each parameter once: the model's in its order, then parameters
    that only the optimizer has, as optimizer.<group>.<index>."""
    named = {name.replace("_orig_mod.", ""): p  # a shared parameter gets its first name
             for name, p in model.named_parameters()}
    known = {id(parameter) for parameter in named.values()}
    for g, group in enumerate(optimizer.param_groups):
        for i, parameter in enumerate(group["params"]):
            if id(parameter) not in known:
                named[f"optimizer.{g}.{i}"] = parameter
    return {name: p for name, p in named.items() if p.dtype in _RECORDED and is_readable(p)}


def leaf_modules(model):
    """Yields (path, module) for the modules whose outputs are recorded: those without submodules.
    Parametrizations do not count, nor submodules of MultiheadAttention, which calls none."""
    compiled = [path for path, module in model.named_modules() if _is_compiled(module)]
    for path, module in model.named_modules():
        if any(not part or path == part or path.startswith(part + ".") for part in compiled):
            continue
        parts = {name for name, _ in module.named_children()}
        if parts <= {"parametrizations"} or isinstance(module, torch.nn.MultiheadAttention):
            yield path or "model", module


def outputs(path, output):
    """Yields (name, tensor) for the floating-point tensors in a module's output. The name of a
    single tensor is the module's path; in containers, the index or key is appended."""
    if isinstance(output, torch.Tensor):
        if is_recorded(output):
            yield path, output
    elif isinstance(output, dict):
        for key, item in output.items():
            yield from outputs(f"{path}.{key}", item)
    elif isinstance(output, (tuple, list)):
        for index, item in enumerate(output):
            yield from outputs(f"{path}.{index}", item)
