# SPDX-License-Identifier: Apache-2.0
"""PyTorch: its GradScaler around an optimizer with one parameter, on the CPU, whose kernel is the
GPU's but for the threads."""

import drive
import numpy
import torch


class Counting(torch.optim.SGD):
    """Tells whether the scaler let it step."""

    steps = 0

    def step(self, closure=None):
        self.steps += 1


class Torch:
    WHAT = "amp.GradScaler('cpu')"

    def __init__(self, **options):
        self.scaler = torch.amp.GradScaler("cpu", **options)
        self.weight = torch.nn.Parameter(torch.zeros(3))
        self.optimizer = Counting([self.weight], lr=0.0)
        self.scaler.scale(torch.zeros(()))  # the state is made on first use

    def scale(self):
        return self.scaler.get_scale()

    def step(self, gradients):
        values = gradients(self.scaler.get_scale()).astype(numpy.float32)  # it takes no binary16
        self.weight.grad = torch.from_numpy(values)
        before = self.optimizer.steps
        self.scaler.step(self.optimizer)
        self.scaler.update()
        return self.optimizer.steps > before


drive.main({"torch": Torch}, f"torch {torch.__version__}")
