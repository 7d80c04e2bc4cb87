# SPDX-License-Identifier: Apache-2.0
"""Records the gradients of a JAX training loop: docs/jax.md.

    with halfscope.RunLog("run") as log:
        optimizer = optax.chain(halfscope.jax.record(log, every=100), optax.adam(1e-3))
        ...
"""

import functools
import operator
import typing

from halfscope._arguments import described
from halfscope._arrivals import Arrivals
from halfscope._parts import part
from halfscope._trees import named_arrays

_REPEATED = ("inside shard_map, pmap or vmap, name the axes: record(axis_name=...); a loop that goes "
             "back to an older state needs a new log")


class RecordState(typing.NamedTuple):
    """State of record(): the number of updates so far (int32), and the state of its optimizer."""

    count: typing.Any
    optimizer: typing.Any


def interval(name, value):
    """Returns a number of steps, or None. Raises TypeError or ValueError."""
    try:
        number = None if value is None else operator.index(value)
    except TypeError:
        raise TypeError(f"{name} is {described(value)}, expected a number of steps above 0") from None
    if number is not None and number <= 0:
        raise ValueError(f"{name} is {number}, expected a number of steps above 0")
    return number


def record(log, every=10, *, sample_every=None, loss_scale=None, axis_name=None, optimizer=None):
    """Returns an optax transformation that passes gradients through unchanged and records them.

    It may stand anywhere in optax.chain(), under jax.jit, lax.scan, shard_map and pmap. At every
    step it delivers the largest magnitude, the loss and the loss scale, if update() receives them:
    update(gradients, state, params, value=loss, loss_scale=scale, learning_rate=rate).

    log           a halfscope.RunLog; with scaled=True if gradients carry the loss scale here
    every         steps between histograms of the gradients, and of `params` if update() gets them
    sample_every  steps between steps whose full tensors are saved; None: never
    loss_scale    a constant loss scale; update(loss_scale=) takes its place
    axis_name     axes of shard_map, pmap or vmap; the tensors of index 0 are recorded
    optimizer     an optax transformation to apply to the gradients; its updates are recorded too

    Raises TypeError and ValueError. The transformation's init() raises BadInput for a tree without
    arrays, TypeError for types that a log cannot hold. An error while recording gives one warning.
    """
    jax, optax = (part(name, "halfscope.jax", "'halfscope[jax]'") for name in ("jax", "optax"))
    delivery = _Delivery(log, interval("every", every), interval("sample_every", sample_every))
    inner = optax.with_extra_args_support(optimizer or optax.identity())

    def init(params):
        named(params, "weight")
        return RecordState(jax.numpy.zeros((), "int32"), inner.init(params))

    def update(updates, state, params=None, *, loss_scale=loss_scale, learning_rate=None, **more):
        if log.scaled and loss_scale is None:
            raise TypeError("halfscope.jax.record: the log has scaled=True, but update() received no "
                            "loss scale; give record() or update() loss_scale=")
        after, inner_state = inner.update(updates, state.optimizer, params, **more)
        trees = {"weight_grad": updates, "weight": params, "update": after if optimizer else None}
        numbers = {"loss": more.get("value"), "loss_scale": loss_scale, "learning_rate": learning_rate}
        index = 0 if axis_name is None else jax.lax.axis_index(axis_name)
        delivery.send(index, state.count, numbers, trees)
        return after, RecordState(state.count + 1, inner_state)

    return optax.GradientTransformationExtraArgs(init, update)


def apply_gradients(state, grads, **values):
    """Returns state.apply_gradients(grads=grads) of a flax TrainState. The optimizer's update()
    receives `values` (value=loss, loss_scale=scale), which record() records."""
    optax = part("optax", "halfscope.jax", "'halfscope[jax]'")
    given = optax.with_extra_args_support(state.tx)
    once = optax.GradientTransformation(state.tx.init, functools.partial(given.update, **values))
    return state.replace(tx=once).apply_gradients(grads=grads).replace(tx=state.tx)


def named(tree, role):
    """Returns {name without the role: array}. Raises BadInput for a tree without arrays, TypeError
    for types that a log cannot hold."""
    return {name.partition("/")[2]: array for name, array in named_arrays(tree, role).items()}


class _Delivery:
    """Delivers steps from compiled programs to the log."""

    def __init__(self, log, every, sample_every):
        import jax

        self._every = [steps for steps in (every, sample_every) if steps]
        self._sample_every = sample_every
        self._arrivals = Arrivals(log, "halfscope.jax.record", _REPEATED, jax.effects_barrier)

    def send(self, index, count, numbers, trees):
        """Called while a step is traced. Only a recorded step copies tensors to the host."""
        import jax

        trees = {role: named(tree, role) for role, tree in trees.items() if tree is not None}
        numbers = {name: value for name, value in numbers.items() if value is not None}
        largest = _largest(trees["weight_grad"].values())
        chosen = functools.reduce(operator.or_, (count % steps == 0 for steps in self._every), False)
        jax.lax.cond(
            chosen,
            lambda: jax.debug.callback(self._receive, index, count, largest, numbers, trees),
            lambda: jax.debug.callback(self._receive, index, count, largest, numbers, {}))

    def _receive(self, index, count, largest, numbers, trees):
        if int(index) != 0:
            return
        import numpy

        trees = {role: {name: numpy.asarray(array) for name, array in tree.items()}
                 for role, tree in trees.items()}
        numbers = {name: float(number) for name, number in numbers.items()}
        sample = bool(trees and self._sample_every and int(count) % self._sample_every == 0)
        self._arrivals.add(int(count), float(largest), numbers, trees, sample)


def _largest(arrays):
    """Returns the largest magnitude; NaN if one is NaN."""
    from jax import numpy as jnp

    wide = jnp.float32
    if any(array.dtype == "float64" for array in arrays):
        wide = jnp.float64
    return functools.reduce(jnp.maximum, (jnp.max(jnp.abs(array.astype(wide)), initial=0)
                                          for array in arrays))
