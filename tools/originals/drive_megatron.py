# SPDX-License-Identifier: Apache-2.0
"""Megatron-Core: its scaler, from the only file that it needs. The scaler puts its scale on the
GPU; here its tensors are on the CPU instead."""

import importlib.metadata
import types

import drive
import torch


def on_cpu(data, dtype, device):
    return torch.tensor(data, dtype=dtype)


scaler = drive.module_of("megatron", "core.optimizer.grad_scaler")
scaler.torch = types.SimpleNamespace(**{**vars(torch), "tensor": on_cpu})


class Megatron:
    WHAT = "optimizer.grad_scaler.DynamicGradScaler"

    def __init__(self, **options):
        self.scaler = scaler.DynamicGradScaler(**options)

    def scale(self):
        return self.scaler.scale

    def step(self, gradients):
        found_inf = not bool(torch.from_numpy(gradients(float(self.scale()))).isfinite().all())
        self.scaler.update(found_inf)
        return not found_inf


drive.main({"megatron": Megatron}, f"megatron-core {importlib.metadata.version('megatron-core')}")
