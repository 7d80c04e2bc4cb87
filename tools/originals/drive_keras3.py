# SPDX-License-Identifier: Apache-2.0
"""Keras 3 on torch. On JAX the CPU takes subnormal numbers as 0: the scale, which has no floor, is
0 after 2^-126 there, not after 2^-149."""

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
        gradient = gradients(float(self.scale())).astype(numpy.float32)  # as of a float32 variable
        before = int(self.inner.iterations.value)
        with torch.no_grad():
            self.optimizer.apply([torch.from_numpy(gradient)], [self.weight])
        return int(self.inner.iterations.value) > before


drive.main({"keras3": Keras3}, f"keras {keras.__version__}")
