# SPDX-License-Identifier: Apache-2.0
"""DeepSpeed: the scaler of ZeRO, and the rule of FP16_Optimizer without ZeRO. The rule is a method
of an optimizer that needs a GPU; here it runs on an object with the same members."""

import logging
import types

import deepspeed
import drive
import torch
from deepspeed.runtime.fp16.fused_optimizer import FP16_Optimizer
from deepspeed.runtime.fp16.loss_scaler import DynamicLossScaler

deepspeed.utils.logger.setLevel(logging.ERROR)


class Rank0:
    """Replaces deepspeed's module dist: the scaler requests its rank before it logs."""

    @staticmethod
    def get_rank():
        return 0


DynamicLossScaler.update_scale.__globals__["dist"] = Rank0


class Zero:
    WHAT = "runtime.fp16.loss_scaler.DynamicLossScaler"

    def __init__(self, **options):
        self.scaler = DynamicLossScaler(**options)

    def scale(self):
        return self.scaler.loss_scale

    def step(self, gradients):
        gradient = torch.from_numpy(gradients(self.scale()))
        # has_overflow_serial() calls this function as a method, but it lacks self, so it would
        # fail.
        overflow = bool(DynamicLossScaler._has_inf_or_nan(gradient))
        self.scaler.update_scale(overflow)
        return not overflow


class Fused:
    WHAT = "runtime.fp16.fused_optimizer.FP16_Optimizer._update_scale"

    def __init__(self, init_scale=2.0**16, scale_window=1000, min_scale=1):
        self.members = types.SimpleNamespace(
            dynamic_loss_scale=True, cur_scale=init_scale, cur_iter=0, last_overflow_iter=-1,
            scale_factor=2.0, scale_window=scale_window, min_loss_scale=min_scale, verbose=False,
        )

    def scale(self):
        return self.members.cur_scale

    def step(self, gradients):
        overflow = not bool(torch.from_numpy(gradients(self.scale())).isfinite().all())
        FP16_Optimizer._update_scale(self.members, overflow)
        return not overflow


drive.main({"deepspeed": Zero, "deepspeed-fused": Fused}, f"deepspeed {deepspeed.__version__}")
