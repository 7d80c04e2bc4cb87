# SPDX-License-Identifier: Apache-2.0
"""Operands of matrix products in block formats: docs/simulate.md.

Blocks lie along the dimension that is summed over, so the two copies of a tensor that two products
read are quantised separately.
"""

import bisect
import contextlib

import torch
from torch.autograd import Variable
from torch.multiprocessing.reductions import StorageWeakRef

from halfscope import _halfscope
from halfscope._arguments import check_number, described
from halfscope.torch.emulate_rounding import rounded

# Kinds of operands. other: both operands of a product that no parameter takes part in (attention).
KINDS = ("weight", "activation", "gradient", "other")
_MANY = 1 << 17  # fewer values are quantised faster on one thread


def recipes_of(recipe, seed):
    """Returns {kind: recipe or None} for the argument `recipe`; None if there is none. Raises
    TypeError or ValueError."""
    check_number("seed", seed, "a whole number below 2^32", int, 2**32 - 1)
    if recipe is None:
        return None
    if not isinstance(recipe, (str, dict)):
        raise TypeError(f"recipe: found {described(recipe)}, expected None, the name of a recipe such as "
                        "'nvfp4', or a dict such as {'weight': 'nvfp4-2d', 'activation': 'nvfp4'}")
    each = dict.fromkeys(KINDS, recipe) if isinstance(recipe, str) else recipe
    for kind in each:
        if kind not in KINDS:
            raise ValueError(f"recipe: found the kind {described(kind)}, expected {', '.join(KINDS)}")
    return {kind: _recipe_of(kind, each.get(kind)) for kind in KINDS}


def _recipe_of(kind, name):
    """Returns the recipe that a name has for a kind of operand; None if there is none."""
    if name is None:
        return None
    if not isinstance(name, str) or len(name) > 80:  # the error below has all of it
        raise ValueError(f"recipe: found {described(name)}, expected a name")
    try:
        return _halfscope.recipes_of_operands(name)[kind]
    except ValueError as error:
        raise ValueError(f"recipe: {error}") from None


class _Engine:
    """Stands in for PyTorch's autograd engine, to know when a backward pass runs."""

    def __init__(self, engine):
        self._engine = engine
        self._modes = []  # an entry for each backward pass that runs: True if it records a graph

    def __getattr__(self, name):
        return getattr(self._engine, name)

    def run_backward(self, tensors, gradients, keep_graph, create_graph, *args, **kwargs):
        self._modes.append(create_graph)
        try:
            return self._engine.run_backward(tensors, gradients, keep_graph, create_graph, *args, **kwargs)
        finally:
            self._modes.pop()

    def is_backward(self):
        """Returns False in a forward pass, also if a checkpoint runs one inside a backward pass."""
        return bool(self._modes) and torch.is_grad_enabled() == self._modes[-1]


class _Layers:
    """Names of the weights that tensors were multiplied with in forward passes, for as long as the
    tensors' memory lives."""

    def __init__(self):
        self._names = {}  # {storage: names}
        self._most = 64

    def add(self, tensor, names):
        self._names.setdefault(_storage_of(tensor), set()).update(names)
        if len(self._names) > self._most:
            self._names = {one: names for one, names in self._names.items() if not one.expired()}
            self._most = 2 * len(self._names) + 64

    def of(self, tensor):
        return self._names.get(_storage_of(tensor), ())


class Recipes:
    """Quantises the operands of products. parameters: {name: parameter} with two and more
    dimensions. wide: names of those that stay FP32."""

    def __init__(self, recipes, seed, format, parameters, wide):
        self._recipes = recipes
        self._format = format
        self._parameters = parameters
        self._wide = wide
        self._hadamard = _halfscope.hadamard_recipes()
        self._first = seed << 32
        self._layers = _Layers()
        self._count = 0  # quantised operands

    @contextlib.contextmanager
    def begun(self):
        """A context in which kinds of operands are known. Random numbers start again."""
        self._count = 0
        self.find_weights()
        before = Variable._execution_engine
        self._engine = Variable._execution_engine = _Engine(before)
        try:
            yield
        finally:
            Variable._execution_engine = before

    def find_weights(self):
        """Looks up where the parameters are in memory: at the start, and before each forward pass."""
        ends = {}  # {address: (end, name)}
        for name, p in self._parameters.items():
            begin = p.data_ptr()
            ends.setdefault(begin, (begin + p.numel() * p.element_size(), name))
        self._begins = sorted(ends)
        self._ends = [ends[begin] for begin in self._begins]

    def product(self, multiply, operation, a, b):
        """Returns a b of quantised operands, with sums by multiply(). operation: for errors."""
        kinds, layers = self._kinds(a, b)
        names = [self._recipes[kind] for kind in kinds]
        stays = (layers and self._wide.issuperset(layers)) or 0 in (a.numel(), b.numel())
        if stays or names == [None, None]:
            return multiply(a, b)
        transform = self._hadamard.issuperset(names)
        try:
            left, scale = self._quantised(names[0], a, transform)
            right, other = self._quantised(names[1], b.transpose(-1, -2), transform)
        except ValueError as error:
            where = f" ({', '.join(sorted(layers))})" if layers else ""
            raise RuntimeError(
                f"{operation}{where} of {tuple(a.shape)} and {tuple(b.shape)}: {error}, for the dimension "
                "that is summed over; change the layer's size or the batch, take a recipe without this "
                "limit, or keep the layer's weight in FP32 by keep_fp32") from None
        sums = multiply(left, right.transpose(-1, -2))
        return (sums * (scale * other.transpose(-1, -2))).to(a.device)

    def _kinds(self, a, b):
        """Returns the kinds of both operands, and the names of the weights of their layers."""
        weights = [self._weight(x) for x in (a, b)]
        layers = {name for name in weights if name}
        backward = self._engine.is_backward()
        if layers:
            rest = "gradient" if backward else "activation"
            for x, name in zip((a, b), weights):
                if not name and not backward:
                    self._layers.add(x, layers)
            return ["weight" if name else rest for name in weights], layers
        seen = [self._layers.of(x) if backward else () for x in (a, b)]
        if any(seen):
            return ["activation" if names else "gradient" for names in seen], {*seen[0], *seen[1]}
        return ["other", "other"], layers

    def _weight(self, tensor):
        """Returns the name of the parameter whose memory a tensor is in, or None."""
        address = tensor.data_ptr() if tensor.numel() else 0
        i = bisect.bisect_right(self._begins, address) - 1
        end, name = self._ends[i] if i >= 0 else (0, None)
        return name if address < end else None

    def _quantised(self, name, tensor, transform):
        """Returns an operand as code times block scale, and its second scale, one or one a row."""
        values = rounded(tensor.cpu().contiguous(), self._format)
        if name is None:
            return values, torch.ones(1, 1)
        seed = self._first + self._count
        self._count += 1
        threads = 0 if values.numel() >= _MANY else 1
        codes, scales, second = _halfscope.quantise_blocks(
            name, values, self._format or "binary32", transform, False, seed, None, threads, True)
        ones = None if second is None else [1.0] * second.numel()
        values = _halfscope.dequantise_blocks(name, codes, scales, ones, False, True)
        if second is None:
            return values, torch.ones(1, 1)
        return values, second.view(*values.shape[:-1], 1) if len(ones) > 1 else second.view(1, 1)


def shares(parameter, view):
    """Returns True if a view begins in a parameter's memory."""
    begin = parameter.data_ptr()
    return view.numel() > 0 and begin <= view.data_ptr() < begin + parameter.numel() * parameter.element_size()


def _storage_of(tensor):
    storage = tensor.untyped_storage() if hasattr(tensor, "untyped_storage") else tensor.storage()
    return StorageWeakRef(storage)
