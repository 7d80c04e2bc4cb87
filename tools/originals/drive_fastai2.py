# SPDX-License-Identifier: Apache-2.0
"""fastai 2: the callback that has its own scaler (MixedPrecision uses torch's GradScaler), with the
parameters that it would receive from a learner on a GPU."""

import types
import warnings

warnings.filterwarnings("ignore")

import drive
import fastai
import torch
from fastai.callback.core import CancelBatchException
from fastai.callback.fp16 import NonNativeMixedPrecision


class Fastai2:
    WHAT = "callback.fp16.NonNativeMixedPrecision"

    def __init__(self, **options):
        self.half = torch.nn.Parameter(torch.zeros(3, dtype=torch.float16))
        self.master = torch.nn.Parameter(torch.zeros(3))
        self.callback = NonNativeMixedPrecision(**options)
        model = types.SimpleNamespace(zero_grad=lambda: None)
        self.callback.learn = types.SimpleNamespace(model=model, loss_grad=torch.zeros(()))
        # The state after before_fit().
        self.callback.model_pgs, self.callback.master_pgs = [[self.half]], [[self.master]]
        self.callback.count = 0

    def scale(self):
        return self.callback.loss_scale

    def step(self, gradients):
        self.half.grad = torch.from_numpy(gradients(self.scale()))
        try:
            self.callback.before_step()
        except CancelBatchException:
            return False
        return True


drive.main({"fastai2": Fastai2}, f"fastai {fastai.__version__}")
