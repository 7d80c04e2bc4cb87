# SPDX-License-Identifier: Apache-2.0
"""Trains a network on two forced host devices, recorded and not: jax_two_devices.py MODE FOLDER.

Prints a line of JSON: what the training returned, whether it was recorded or not."""

import functools
import json
import os
import pathlib
import sys

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=2"

import jax  # noqa: E402
import numpy as np  # noqa: E402
import optax  # noqa: E402
from jax import numpy as jnp  # noqa: E402
from jax.sharding import Mesh, NamedSharding, PartitionSpec  # noqa: E402

import halfscope  # noqa: E402
import halfscope.jax  # noqa: E402

STEPS = 5
PARAMETERS = {"a": np.linspace(-1, 1, 96, dtype="float32").reshape(8, 12), "b": np.ones(12, "float32")}
INPUTS = np.random.default_rng(0).normal(size=(STEPS, 16, 8)).astype("float32")


def loss_of(parameters, x):
    return jnp.mean(jnp.tanh(x @ parameters["a"] + parameters["b"]) ** 2)


def one_step(optimizer, mean, carry, x):
    parameters, state = carry
    loss, gradients = jax.value_and_grad(loss_of)(parameters, x)
    loss, gradients = mean((loss, gradients))
    updates, state = optimizer.update(gradients, state, parameters, value=loss)
    return (optax.apply_updates(parameters, updates), state), (loss, gradients)


def mean_of_all(values):
    return jax.lax.pmean(values, "data")


def with_pmap(optimizer):
    step = jax.pmap(functools.partial(one_step, optimizer, mean_of_all), axis_name="data")

    def call(carry, x):
        return step(carry, x.reshape(2, 8, 8))

    return call, lambda tree: jax.tree_util.tree_map(lambda leaf: np.stack([leaf, leaf]), tree), lambda leaf: leaf[0]


def with_shard_map(optimizer):
    mesh = Mesh(np.array(jax.devices()), ("data",))
    if hasattr(jax, "shard_map"):
        shard_map, checks = jax.shard_map, {}
    else:  # its checks know no lax.cond
        from jax.experimental.shard_map import shard_map

        checks = {"check_rep": False}
    step = shard_map(functools.partial(one_step, optimizer, mean_of_all), mesh=mesh,
                     in_specs=(PartitionSpec(), PartitionSpec("data")), out_specs=PartitionSpec(),
                     **checks)
    return jax.jit(step), lambda tree: tree, lambda leaf: leaf


def with_sharded_arrays(optimizer):
    """jit divides the work: the second dimension of `a` and of its gradient is split."""
    mesh = Mesh(np.array(jax.devices()), ("data",))
    step = jax.jit(functools.partial(one_step, optimizer, lambda values: values))

    def place(tree):
        return jax.tree_util.tree_map(lambda leaf: jax.device_put(leaf, NamedSharding(
            mesh, PartitionSpec(None, "data") if np.ndim(leaf) == 2 else PartitionSpec())), tree)

    return step, place, lambda leaf: leaf


def train(make, optimizer):
    """Returns the losses and the gradients of all steps."""
    step, place, first = make(optimizer)
    carry = place((PARAMETERS, optimizer.init(PARAMETERS)))
    results = []
    for x in INPUTS:
        carry, result = step(carry, x)
        results.append(jax.tree_util.tree_map(lambda leaf: np.asarray(first(leaf)).tobytes().hex(), result))
    return results


def main():
    mode, folder = sys.argv[1:]
    make = globals()[f"with_{mode}"]
    plain = train(make, optax.with_extra_args_support(optax.adam(0.01)))
    axes = None if mode == "sharded_arrays" else "data"
    with halfscope.RunLog(pathlib.Path(folder)) as log:
        recorder = halfscope.jax.record(log, every=2, sample_every=1, axis_name=axes)
        recorded = train(make, optax.chain(recorder, optax.adam(0.01)))
    print(json.dumps({"devices": jax.device_count(), "plain": plain, "recorded": recorded}))


main()
