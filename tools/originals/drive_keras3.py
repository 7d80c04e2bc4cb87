# SPDX-License-Identifier: Apache-2.0
"""Keras 3 on torch. With JAX the CPU treats subnormal numbers as 0, so that the scale, which has no
lower limit, becomes 0 after 2^-126 instead of 2^-149."""

import os

os.environ["KERAS_BACKEND"] = "torch"

import drive
import keras
import numpy
import torch


class Keras3:
    WHAT = "optimizers.LossScaleOptimizer"

    def __init__(self, **options):
        self.weight = keras.Variable(numpy.zeros(3, numpy.float32))
        self.inner = keras.optimizers.SGD(0.0)
        self.optimizer = keras.optimizers.LossScaleOptimizer(self.inner, **options)
        self.optimizer.build([self.weight])

    def scale(self):
        return self.optimizer.dynamic_scale.value

    def step(self, gradients):
        gradient = gradients(float(self.scale())).astype(numpy.float32)  # the variable is float32
        before = int(self.inner.iterations.value)
        with torch.no_grad():
            self.optimizer.apply([torch.from_numpy(gradient)], [self.weight])
        return int(self.inner.iterations.value) > before


drive.main({"keras3": Keras3}, f"keras {keras.__version__}")
