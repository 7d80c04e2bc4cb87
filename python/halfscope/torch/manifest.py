# SPDX-License-Identifier: Apache-2.0
"""The description of a recorded run in run.json."""

import math
import platform

import torch

from halfscope._halfscope import __version__
from halfscope.torch import steps


def rank_and_world_size():
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        return torch.distributed.get_rank(), torch.distributed.get_world_size()
    return 0, 1


def hyperparameters(optimizer, names):
    """Returns the optimizer's parameter groups as JSON values. names: {id of a parameter: name}."""
    groups = []
    for group in optimizer.param_groups:
        values = {key: as_json(value) for key, value in group.items() if key != "params"}
        values["params"] = [names.get(id(p)) for p in group["params"]]
        groups.append(values)
    return groups


def trained(model, optimizer, names, before=None):
    """Returns the description of network and optimizer. before: an earlier result, or None. Its
    groups keep their settings and their removed parameters, because the log has steps with them."""
    parameters = list(model.parameters())
    groups = hyperparameters(optimizer, names)
    for group, earlier in zip(groups, before["optimizer"]["param_groups"] if before else ()):
        elsewhere = {name for other in groups if other is not group for name in other["params"]}
        stay = [name for name in earlier["params"] if name not in elsewhere]
        joined = [name for name in group["params"] if name not in stay]
        group.update({**earlier, "params": stay + joined})
    return {
        "network": {"class": _class(model), "parameters": sum(p.numel() for p in parameters),
                    "dtypes": sorted({as_json(p.dtype) for p in parameters}), "text": repr(model)},
        "optimizer": {"class": _class(optimizer), "param_groups": groups},
    }


def autocast(casts):
    """Returns the autocast settings for run.json. casts: {kind of device: dtype, None if off}."""
    return {device: as_json(cast) for device, cast in sorted(casts.items())}


def about(model, optimizer, loss_scale, recorder):
    """Returns further information for run.json. recorder: the recorder's own settings."""
    devices = sorted({str(p.device) for p in model.parameters()})
    return {
        "loss_scaling": as_json(loss_scale.about()),
        "recorder": {
            **recorder,
            "gradients": "as the last backward pass of the step left them, before unscaling and clipping",
            "update": "recomputed" if steps.knows(optimizer) else "not known: see weight_after",
        },
        "seed": torch.initial_seed(),
        "devices": [_device(name) for name in devices],
        "tf32": {"matmul": _tf32(torch.backends.cuda.matmul), "cudnn": _tf32(torch.backends.cudnn)},
        "versions": {"halfscope": __version__, "torch": torch.__version__,
                     "python": platform.python_version()},
    }


def _tf32(backend):
    """Returns True if TF32 is allowed. In PyTorch 2.9 and later, reading the older of two settings
    raises an error if the newer one was set."""
    try:
        return backend.allow_tf32
    except RuntimeError:
        return getattr(backend, "fp32_precision", None) == "tf32"


def _class(thing):
    return f"{type(thing).__module__}.{type(thing).__qualname__}"


def _device(name):
    if name.startswith("cuda") and torch.cuda.is_available():
        return f"{name}: {torch.cuda.get_device_name(name)}"
    return f"{name}: {platform.machine()}" if name == "cpu" else name


def as_json(value):
    """Returns a hyperparameter or setting as a JSON value."""
    if isinstance(value, torch.Tensor):
        return as_json(value.tolist())
    if isinstance(value, dict):
        return {str(key): as_json(item) for key, item in value.items()}
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, (list, tuple)):
        return [as_json(item) for item in value]
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return str(value).replace("torch.", "")
