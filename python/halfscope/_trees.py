# SPDX-License-Identifier: Apache-2.0
"""Finds the arrays in nested containers, such as JAX's pytrees, and names them."""

import dataclasses
import re
import sys
from collections.abc import Mapping

from halfscope._arguments import described
from halfscope._halfscope import BadInput
from halfscope._tables import as_numbers

# The first part of a tensor's name in a log: docs/run-log.md.
ROLES = ("weight", "master_weight", "weight_grad", "local_weight_grad", "activation",
         "activation_grad", "update", "weight_after", "optimizer_state")

_FORMATS = {"e": "float16", "f": "float32", "d": "float64"}  # names in the buffer protocol
_DTYPES = ("float16", "bfloat16", "float32", "float64", "float8_e4m3fn", "float8_e5m2")
_MOST_LEVELS = 100
_LONGEST_NAME = 4096  # bytes, as in every log


def named_arrays(tree, role=None, skipped=None):
    """Returns {name: array} of a dict, list, tuple, dataclass or registered JAX pytree, or of an
    array alone. A name is the role, "/", and the keys on the way to the array with "." between; the
    key of an array alone is 0. The first key of an optimizer state is its kind, with "/" after it.
    None is an empty tree. Without a role, the first keys are the roles, if all of them are names of
    roles; else PyTorch's Parameters are weights. Arrays of integers, such as step counters, are left
    out; if `skipped` is a list, their names are added to it. Raises BadInput and TypeError."""
    found, leaves = {}, _leaves(tree, (), role or "tensors")
    in_roles = not role and all(path and path[0] in ROLES for path, _ in leaves)
    for path, array in leaves:
        own, keys = (path[0], path[1:]) if in_roles else (role, path)
        if own is None and isinstance(array, _parameter()):
            own = "weight"
        kind = keys[:1] if own == "optimizer_state" and len(keys) > 1 else ()
        name = "/".join((*([own] if own else []), *kind, ".".join(keys[len(kind):]) or "0"))
        if _is_whole(array):
            if skipped is not None:
                skipped.append(name)
            continue
        if len(name.encode(errors="replace")) > _LONGEST_NAME:
            raise BadInput(f"{_shown(name)}... has a name of more than {_LONGEST_NAME} bytes; shorten a key")
        if any("\ud800" <= character <= "\udfff" for character in name):
            raise BadInput(f"{_shown(name)} has a key that is not UTF-8; rename it")
        if name in found:
            raise BadInput(f"{_shown(name)}: two arrays have this name; rename one of their keys")
        if _dtype(array) not in _DTYPES:
            what = f"dtype {_dtype(array)}" if _dtype(array) else f"found {described(array)}"
            raise TypeError(f"{_shown(name)}: {what}, expected an array of {', '.join(_DTYPES)}; convert "
                            "it or leave it out")
        found[name] = array
    if not found:
        raise BadInput(f"{role or 'tensors'}: {described(tree)} has no arrays of floating-point "
                       "numbers, expected at least one; leave the argument out if there are none")
    return found


def _parameter():
    """Returns PyTorch's class of weights, or () if it is not imported."""
    return getattr(getattr(sys.modules.get("torch"), "nn", None), "Parameter", ())


def is_torch(array):
    """Returns True for a tensor of PyTorch. Never imports it."""
    return isinstance(array, getattr(sys.modules.get("torch"), "Tensor", ()))


def in_memory(name, array):
    """Returns the result of as_numbers() for an array in CPU memory in C order. Copies the values
    only if they are elsewhere or in another order. Raises TypeError."""
    try:
        if is_torch(array):
            from halfscope.torch.tensors import plain

            array = plain(array)
            if array.numel() and not array.data_ptr():
                raise TypeError("its storage was freed, or torch.func traces it")
            return as_numbers(array)
        if hasattr(array, "__cuda_array_interface__") and hasattr(array, "get"):
            array = array.get()  # CuPy
        if hasattr(array, "filled"):
            raise TypeError("masked: pass array.compressed() or array.filled()")
        if hasattr(array, "__array__"):
            import numpy

            array = numpy.asarray(array, order="C")
        return as_numbers(array)
    except MemoryError:
        raise
    except Exception as error:  # a JAX array that jit traces or that was deleted, for example
        reason = str(error).partition("\n")[0]
        raise TypeError(f"{_shown(name)}: {described(array)} cannot be read ({reason})") from error


def _children(node):
    """Returns the (key, child) pairs of a container; None for anything else."""
    if node is None:
        return ()
    if isinstance(node, Mapping):
        return node.items()
    if isinstance(node, (list, tuple)):
        return zip(getattr(node, "_fields", None) or range(len(node)), node)
    if isinstance(node, type) or hasattr(type(node), "__dlpack__"):
        return None
    trees = getattr(sys.modules.get("jax"), "tree_util", None)
    if trees is not None and not trees.all_leaves([node]):
        below, _ = trees.tree_flatten_with_path(node, is_leaf=lambda other: other is not node)
        return [(_key(step), child) for (step,), child in below]
    if dataclasses.is_dataclass(node):
        return [(field.name, getattr(node, field.name)) for field in dataclasses.fields(node)]
    return None


def _key(step):
    return next((getattr(step, name) for name in ("key", "idx", "name") if hasattr(step, name)), step)


def _leaves(node, path, what):
    if len(path) > _MOST_LEVELS:
        raise BadInput(f"{what}: the tree has more than {_MOST_LEVELS} levels, or it contains itself; "
                       "expected a tree of arrays")
    children = _children(node)
    if children is None:
        return [(path, node)]
    return [leaf for key, child in children for leaf in _leaves(child, (*path, str(key)), what)]


def _dtype(array):
    """Returns the name of the elements' type; empty for what is no array."""
    if hasattr(array, "dtype"):
        return str(array.dtype).removeprefix("torch.")
    try:
        format = memoryview(array).format.lstrip("@=<" if sys.byteorder == "little" else "@=>")
    except TypeError:
        return "float32" if hasattr(array, "__dlpack__") else ""  # the extension sees its type
    return _FORMATS.get(format, "int" if format in "bBhHiIlLqQnN?" else format)


def _is_whole(array):
    return isinstance(array, int) or re.match("[<>]?[iu][1248]|u?int|bool|key|float0", _dtype(array)) is not None


def _shown(name):
    return f"tensor {name[:200]!r}"
