# SPDX-License-Identifier: Apache-2.0
"""PyTorch: its GradScaler with an optimizer of one parameter, on the CPU. The CPU kernel is that of
the GPU, except for threads."""

import drive
import numpy
import torch


class Counting(torch.optim.SGD):
    """Counts the steps that the scaler did not skip."""

    steps = 0

    def step(self, closure=None):
        self.steps += 1


class Torch:
    WHAT = "amp.GradScaler('cpu')"

    def __init__(self, **options):
        self.scaler = torch.amp.GradScaler("cpu", **options)
        self.weight = torch.nn.Parameter(torch.zeros(3))
        self.optimizer = Counting([self.weight], lr=0.0)
        self.scaler.scale(torch.zeros(()))  # creates the scaler's state

    def scale(self):
        return self.scaler.get_scale()

    def step(self, gradients):
        values = gradients(self.scaler.get_scale()).astype(numpy.float32)  # binary16 is not accepted
        self.weight.grad = torch.from_numpy(values)
        before = self.optimizer.steps
        self.scaler.step(self.optimizer)
        self.scaler.update()
        return self.optimizer.steps > before


drive.main({"torch": Torch}, f"torch {torch.__version__}")
