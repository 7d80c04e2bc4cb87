# SPDX-License-Identifier: Apache-2.0
"""JAX: jmp. Compiled with its complete state as arguments, because the object loses min_loss_scale
if it passes through a pytree."""

import importlib.metadata

import drive
import jax
import jax.numpy as jnp
import jmp


class Jmp:
    WHAT = "DynamicLossScale"

    def __init__(self, loss_scale=2.0**15, min_loss_scale=1.0, **options):
        start = jmp.DynamicLossScale(jnp.float32(loss_scale), **options)
        self.state = (start.loss_scale, start.counter)
        floor = jnp.float32(min_loss_scale)

        @jax.jit
        def advance(scale, counter, gradient):
            scaler = jmp.DynamicLossScale(scale, counter, min_loss_scale=floor, **options)
            finite = jmp.all_finite(scaler.unscale({"weight": gradient}))
            after = scaler.adjust(finite)
            return (after.loss_scale, after.counter), finite

        self.advance = advance

    def scale(self):
        return self.state[0]

    def step(self, gradients):
        self.state, finite = self.advance(*self.state, gradients(float(self.state[0])))
        return bool(finite)


drive.main({"jmp": Jmp}, f"jmp {importlib.metadata.version('jmp')}")
