# SPDX-License-Identifier: Apache-2.0
"""Records the gradients of a JAX training loop: docs/jax.md."""

import collections
import functools

from halfscope._arguments import interval
from halfscope._arrivals import Arrivals
from halfscope._parts import part
from halfscope._trees import named_arrays

_PACKAGE = "'halfscope[jax]'"
_REPEATED = ("name the axes of shard_map, pmap or vmap: record(axis_name=...); put record() before "
             "optax.MultiSteps, not into it; a loop that goes back to an older state needs a new log")


# State of record(): the number of updates so far (int32), and the state of its optimizer.
RecordState = collections.namedtuple("RecordState", ("count", "optimizer"))


def record(log, every=10, *, sample_every=None, loss_scale=None, axis_name=None, optimizer=None):
    """Returns an optax transformation that passes gradients through unchanged and records them.

    log: a halfscope.RunLog; with scaled=True if gradients carry the loss scale here. every: steps
    between histograms of gradients, and of `params` if update() receives them. sample_every: steps
    between steps whose full tensors are saved; None: never. loss_scale: a constant loss scale; that
    of update() takes precedence. axis_name: axes of shard_map, pmap or vmap; index 0 is recorded.
    optimizer: an optax transformation to apply to the gradients; its updates are recorded too.
    update() also records its arguments value (the loss), loss_scale, learning_rate, found_inf.

    Raises TypeError. The transformation's init() raises BadInput for a tree without arrays, and
    TypeError for types that a log cannot hold. An error while recording gives one warning.
    """
    jax, optax = (part(name, "halfscope.jax", _PACKAGE) for name in ("jax", "optax"))
    arrivals = Arrivals(log, "halfscope.jax.record", interval("every", every),
                        interval("sample_every", sample_every), _REPEATED, jax.effects_barrier)
    inner = optax.with_extra_args_support(optimizer or optax.identity())

    def init(params):
        named_arrays(params, "weight")
        return RecordState(jax.numpy.zeros((), "int32"), inner.init(params))

    def update(updates, state, params=None, *, loss_scale=loss_scale, **more):
        if log._scaled and loss_scale is None:
            raise TypeError("halfscope.jax.record: found no loss scale, but the log has scaled=True; "
                            "give update() or record() loss_scale=")
        after, inner_state = inner.update(updates, state.optimizer, params, **more)
        numbers = {"loss": more.get("value"), "loss_scale": loss_scale,
                   **{name: more.get(name) for name in ("learning_rate", "found_inf")}}
        trees = {"weight_grad": updates, "weight": params, "update": after if optimizer else None}
        send(arrivals, state.count, numbers, {
            role: {name.partition("/")[2]: array for name, array in named_arrays(tree, role).items()}
            for role, tree in trees.items() if tree is not None}, axis_name)
        return after, RecordState(state.count + 1, inner_state)

    return optax.GradientTransformationExtraArgs(init, update)


def apply_gradients(state, grads, **values):
    """Returns state.apply_gradients(grads=grads) of a flax TrainState. Its optimizer's update()
    receives `values`, such as value=loss and loss_scale=scale, which record() records."""
    update = part("optax", "halfscope.jax", _PACKAGE).with_extra_args_support(state.tx).update
    once = state.tx._replace(update=functools.partial(update, **values))
    return state.replace(tx=once).apply_gradients(grads=grads).replace(tx=state.tx)


def send(arrivals, count, numbers, trees, axis_name=None):
    """Delivers a step to Arrivals.receive(), that of index 0 of the axes. Called while the step is
    traced. Only chosen steps copy tensors to the host."""
    import jax
    import numpy

    largest = _largest(trees["weight_grad"].values())

    def receive(index, *step):
        if int(index) == 0:  # copies: JAX uses the memory again, and a step may have to wait
            arrivals.receive(*jax.tree_util.tree_map(numpy.array, step))

    def deliver(trees):
        return lambda: jax.debug.callback(  # the index in the branch: XLA moves it there, and fails
            functools.partial(arrivals.guarded, receive),
            0 if axis_name is None else jax.lax.axis_index(axis_name), count, largest, numbers, trees)

    if axis_name is not None:  # one condition for all indices: vmap would run both branches
        count = jax.lax.pmax(count, axis_name)
    jax.lax.cond(arrivals.chosen(count), deliver(trees), deliver({}))


def _largest(arrays):
    """Returns the largest magnitude; NaN if a value is NaN. Compares bits: XLA may leave out the
    rounding of 16-bit values that arithmetic uses, and then an infinity is finite."""
    from jax import lax, numpy as jnp

    def of_one(array):
        size = 8 * array.dtype.itemsize
        bits = lax.bitcast_convert_type(array, f"uint{size}") & (2 ** (size - 1) - 1)
        return lax.bitcast_convert_type(jnp.max(bits, initial=0), array.dtype).astype(wide)

    wide = "float64" if any(array.dtype == "float64" for array in arrays) else "float32"
    return functools.reduce(jnp.maximum, map(of_one, arrays))
