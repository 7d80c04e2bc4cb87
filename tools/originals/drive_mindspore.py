# SPDX-License-Identifier: Apache-2.0
"""MindSpore on the CPU: the manager, which decides in Python, and the cell, which decides on the
device. MindSpore detects overflow outside of both."""

import drive
import mindspore
import numpy
from mindspore import nn
from mindspore.amp import DynamicLossScaleManager


def overflows(gradient):
    return not bool(numpy.isfinite(gradient).all())


class Manager:
    WHAT = "amp.DynamicLossScaleManager"

    def __init__(self, **options):
        self.manager = DynamicLossScaleManager(**options)

    def scale(self):
        return self.manager.get_loss_scale()

    def step(self, gradients):
        overflow = overflows(gradients(float(self.scale())))
        self.manager.update_loss_scale(overflow)
        return not (overflow and self.manager.get_drop_overflow_update())


class Cell:
    WHAT = "nn.DynamicLossScaleUpdateCell"

    def __init__(self, loss_scale_value=2.0**24, scale_factor=2, scale_window=2000):
        self.cell = nn.DynamicLossScaleUpdateCell(loss_scale_value, scale_factor, scale_window)
        start = mindspore.Tensor(self.cell.get_loss_scale(), mindspore.float32)
        self.current = mindspore.Parameter(start, name="scale")  # as TrainOneStepWithLossScaleCell has

    def scale(self):
        return self.current.asnumpy()

    def step(self, gradients):
        overflow = mindspore.Tensor(overflows(gradients(float(self.scale()))))
        return not bool(self.cell(self.current, overflow))


mindspore.set_context(mode=mindspore.PYNATIVE_MODE, device_target="CPU")
drive.main({"mindspore": Manager, "mindspore-cell": Cell}, f"mindspore {mindspore.__version__}")
