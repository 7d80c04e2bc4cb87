# SPDX-License-Identifier: Apache-2.0
"""MXNet: a Gluon trainer with one parameter. Its scaler has no arguments, so settings are assigned
to the object."""

import drive
import numpy

numpy.seterr(all="ignore")
numpy.bool = bool  # MXNet 1.9 uses it; NumPy 1.24 and later lack it
import mxnet
from mxnet import gluon
from mxnet.contrib import amp
from mxnet.contrib.amp.loss_scaler import LossScaler


class Counting(mxnet.optimizer.Optimizer):
    """Counts applied steps. SGD's own operator would refuse scales below 2^-127."""

    steps = 0

    def create_state(self, index, weight):
        return None

    def update(self, index, weight, grad, state):
        self.steps += 1


class Mxnet:
    WHAT = "contrib.amp with gluon.Trainer"

    def __init__(self, init_scale=None, scale_window=None):
        self.weight = gluon.Parameter("weight", shape=(3,), dtype="float16")
        self.weight.initialize(mxnet.init.Zero())
        self.optimizer = Counting()
        self.trainer = gluon.Trainer([self.weight], self.optimizer, kvstore=None)
        self.scaler = LossScaler()
        if init_scale is not None:
            self.scaler._loss_scale = self.scaler._next_loss_scale = init_scale
        if scale_window is not None:
            self.scaler._scale_seq_len = scale_window
        # Does what amp.init_trainer() does, without amp.init(), which rewrites every operator.
        self.trainer._amp_loss_scaler = self.scaler
        # A NumPy number, for which 1 / 0 is infinity; a Python number would raise.
        self.trainer._amp_original_scale = numpy.float64(self.trainer._scale)
        self.loss = 0.0  # a Python number: an operator would refuse scales below 2^-1022

    def scale(self):
        return self.scaler.loss_scale

    def step(self, gradients):
        with amp.scale_loss(self.loss, self.trainer):
            self.weight.grad()[:] = mxnet.nd.array(gradients(self.scale()), dtype="float16")
            self.weight.data()._fresh_grad = True
        before = self.optimizer.steps
        self.trainer.step(1)
        return self.optimizer.steps > before


drive.main({"mxnet": Mxnet}, f"mxnet {mxnet.__version__}")
