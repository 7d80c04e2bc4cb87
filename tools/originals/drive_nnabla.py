# SPDX-License-Identifier: Apache-2.0
"""NNabla: the updater with a real solver, and a network with prescribed gradients."""

import drive
import nnabla
import nnabla.solvers
import numpy
from nnabla.experimental.mixed_precision_training import DynamicLossScalingUpdater


class Loss:
    """The methods of a network's loss that the updater calls."""

    def __init__(self, weight):
        self.weight = weight
        self.gradients = None

    def forward(self, clear_no_need_grad):
        pass

    def backward(self, scale, clear_buffer):
        self.weight.g = self.gradients(scale).astype(numpy.float32)


class Nnabla:
    WHAT = "experimental...DynamicLossScalingUpdater"

    def __init__(self, **options):
        weight = nnabla.Variable((3,), need_grad=True)
        self.solver = nnabla.solvers.Momentum(lr=0.0)
        self.solver.set_parameters({"weight": weight})
        self.loss = Loss(weight)
        self.weight = weight
        self.updater = DynamicLossScalingUpdater(
            self.solver, self.loss, data_feeder=lambda: None, **options
        )

    def scale(self):
        return self.updater.scale

    def step(self, gradients):
        self.loss.gradients = gradients
        before = self.solver.get_states()["weight"].t
        self.updater.update()
        return self.solver.get_states()["weight"].t > before


drive.main({"nnabla": Nnabla}, f"nnabla {nnabla.__version__}")
