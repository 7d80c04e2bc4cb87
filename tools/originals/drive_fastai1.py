# SPDX-License-Identifier: Apache-2.0
"""fastai 1: the callback, with the parameters that a learner on a GPU would have given it."""

import warnings

warnings.filterwarnings("ignore")

import drive
import fastai
import torch
from fastai.callbacks.fp16 import MixedPrecision


class Fastai1:
    WHAT = "callbacks.fp16.MixedPrecision"

    def __init__(self, **options):
        self.learner = torch.nn.Module()  # anything; the callback keeps only a weak reference
        self.callback = MixedPrecision(self.learner, **options)
        self.half = torch.nn.Parameter(torch.zeros(3, dtype=torch.float16))
        self.master = torch.nn.Parameter(torch.zeros(3))
        # As on_train_begin() leaves it.
        self.callback.model_params, self.callback.master_params = [[self.half]], [[self.master]]
        self.callback.noskip = 0

    def scale(self):
        return self.callback.loss_scale

    def step(self, gradients):
        self.half.grad = torch.from_numpy(gradients(self.scale()))
        self.master.grad = None
        self.callback.on_backward_end()
        return self.master.grad is not None  # without one, the optimizer changes nothing


drive.main({"fastai1": Fastai1}, f"fastai {fastai.__version__}")
