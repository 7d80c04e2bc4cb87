# SPDX-License-Identifier: Apache-2.0
"""fastai 1: the callback, with the parameters that it would receive from a learner on a GPU."""

import warnings

warnings.filterwarnings("ignore")

import drive
import fastai
import torch
from fastai.callbacks.fp16 import MixedPrecision


class Fastai1:
    WHAT = "callbacks.fp16.MixedPrecision"

    def __init__(self, **options):
        self.learner = torch.nn.Module()  # any object; the callback has a weak reference to it
        self.callback = MixedPrecision(self.learner, **options)
        self.half = torch.nn.Parameter(torch.zeros(3, dtype=torch.float16))
        self.master = torch.nn.Parameter(torch.zeros(3))
        # The state after on_train_begin().
        self.callback.model_params, self.callback.master_params = [[self.half]], [[self.master]]
        self.callback.noskip = 0

    def scale(self):
        return self.callback.loss_scale

    def step(self, gradients):
        self.half.grad = torch.from_numpy(gradients(self.scale()))
        self.master.grad = None
        self.callback.on_backward_end()
        return self.master.grad is not None  # without a gradient, the optimizer changes nothing


drive.main({"fastai1": Fastai1}, f"fastai {fastai.__version__}")
