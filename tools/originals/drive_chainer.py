# SPDX-License-Identifier: Apache-2.0
"""Chainer: a complete optimizer with one parameter."""

import warnings

import chainer
import drive
import numpy

warnings.filterwarnings("ignore", message="Non finite number found")


class Chainer:
    WHAT = "optimizers.SGD().loss_scaling()"

    def __init__(self, **options):
        self.target = chainer.Chain()
        with self.target.init_scope():
            self.target.weight = chainer.Parameter(numpy.zeros(3, numpy.float16))
        self.optimizer = chainer.optimizers.SGD(lr=0).setup(self.target)
        self.optimizer.loss_scaling(**options)

    def scale(self):
        return self.optimizer._loss_scale

    def step(self, gradients):
        self.target.weight.grad = gradients(self.optimizer._loss_scale)
        self.optimizer.update()
        return self.optimizer.is_safe_to_update()


drive.main({"chainer": Chainer}, f"chainer {chainer.__version__}")
