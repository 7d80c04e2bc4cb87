# SPDX-License-Identifier: Apache-2.0
"""Structures of tensors, as modules receive and return them."""

import copy
import dataclasses

import torch


def mapped(function, value):
    """Returns the structure with `function` applied to each floating-point tensor in it. Containers
    in which nothing changes are returned as they are, others are copied."""
    if isinstance(value, torch.Tensor):
        return function(value) if torch.is_floating_point(value) else value
    if isinstance(value, dict):
        return _with_items(value, {key: mapped(function, item) for key, item in value.items()})
    if isinstance(value, (tuple, list)):
        items = [mapped(function, item) for item in value]
        if all(a is b for a, b in zip(items, value)):
            return value
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return _with_fields(value, {field.name: mapped(function, getattr(value, field.name))
                                    for field in dataclasses.fields(value)})
    return value


def _with_items(value, items):
    if all(items[key] is item for key, item in value.items()):
        return value
    changed = copy.copy(value)  # works for subclasses with other constructors, such as defaultdict
    for key, item in items.items():
        changed[key] = item
    return changed


def _with_fields(value, items):
    if all(getattr(value, name) is item for name, item in items.items()):
        return value
    changed = copy.copy(value)
    for name, item in items.items():
        object.__setattr__(changed, name, item)  # works for frozen dataclasses too
    return changed
