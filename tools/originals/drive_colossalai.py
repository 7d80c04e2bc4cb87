# SPDX-License-Identifier: Apache-2.0
"""Colossal-AI on the CPU: only its scaler, since the package would import all of its training
code."""

import importlib.metadata

import drive
import torch

scaler = drive.module_of("colossalai", "amp.naive_amp.grad_scaler.dynamic_grad_scaler")
# The scaler requests the number of devices, which the CPU accelerator lacks. The value is not used.
type(scaler.get_accelerator()).device_count = lambda self: 1


class ColossalAi:
    WHAT = "amp.naive_amp.grad_scaler.DynamicGradScaler"

    def __init__(self, **options):
        self.scaler = scaler.DynamicGradScaler(**options)

    def scale(self):
        return self.scaler.scale

    def step(self, gradients):
        overflow = not bool(torch.from_numpy(gradients(float(self.scale()))).isfinite().all())
        self.scaler.update(overflow)
        return not overflow


drive.main({"colossalai": ColossalAi}, f"colossalai {importlib.metadata.version('colossalai')}")
