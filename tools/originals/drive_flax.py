# SPDX-License-Identifier: Apache-2.0
"""JAX: Flax, whose scaler differentiates a loss itself. The loss here has a prescribed gradient."""

import drive
import flax
import jax
import jax.numpy as jnp
from flax.training.dynamic_scale import DynamicScale


@jax.custom_vjp
def loss(weight, gradient):
    return jnp.float32(0)


loss.defvjp(lambda weight, gradient: (jnp.float32(0), gradient), lambda kept, _: (kept, kept))


class Flax:
    WHAT = "training.dynamic_scale.DynamicScale"

    def __init__(self, scale=65536.0, **options):
        self.state = (jnp.int32(0), jnp.float32(scale))
        weight = jnp.zeros(3, jnp.float16)

        @jax.jit
        def advance(fin_steps, scale, gradient):
            scaler = DynamicScale(fin_steps=fin_steps, scale=scale, **options)
            after, finite, _, _ = scaler.value_and_grad(loss)(weight, gradient)
            return (after.fin_steps, after.scale), finite

        self.advance = advance

    def scale(self):
        return self.state[1]

    def step(self, gradients):
        self.state, finite = self.advance(*self.state, gradients(float(self.state[1])))
        return bool(finite)


drive.main({"flax": Flax}, f"flax {flax.__version__}")
