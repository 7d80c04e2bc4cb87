# SPDX-License-Identifier: Apache-2.0
"""Training of the networks of bench_recording.py on a CPU or GPU, with or without FP16."""

import contextlib
import dataclasses
import gc
import pathlib
import platform
import time

import torch
from recording_networks import OPTIMIZERS
from torch import nn


@dataclasses.dataclass(frozen=True)
class Training:
    model: nn.Module
    optimizer: torch.optim.Optimizer
    scaler: object  # None without FP16
    step: object    # a function that trains one step


@dataclasses.dataclass(frozen=True)
class Device:
    """kind: "cpu" or "cuda". amp: FP16 autocast and a GradScaler."""

    kind: str
    amp: bool = False

    @property
    def is_gpu(self):
        return self.kind == "cuda"

    def missing(self):
        """One line that says why networks cannot be trained here; None if they can."""
        if self.is_gpu and not torch.cuda.is_available():
            return "--device cuda: PyTorch finds no GPU"
        if self.amp and not self.is_gpu and not hasattr(torch.amp, "GradScaler"):
            return "--amp with --device cpu: needs PyTorch 2.3 or later"
        return None

    def name(self):
        """The processor's name, which Linux has in a file."""
        if self.is_gpu:
            return torch.cuda.get_device_name()
        with contextlib.suppress(OSError, StopIteration):
            lines = pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
            return next(line.split(":", 1)[1].strip() for line in lines
                        if line.startswith("model name"))
        return platform.machine()

    def training(self, make):
        """A training whose weights, input and target are the same at each call."""
        torch.manual_seed(1)
        model, x, y = make()
        model, x, y = model.to(self.kind), x.to(self.kind), y.to(self.kind)
        optimizer = OPTIMIZERS.get(make, sgd)(model.parameters())
        scaler = self._scaler() if self.amp else None
        step = mixed_step(self.kind, model, x, y, optimizer, scaler) if self.amp else \
            plain_step(model, x, y, optimizer)
        return Training(model, optimizer, scaler, step)

    def _scaler(self):
        if hasattr(torch.amp, "GradScaler"):
            return torch.amp.GradScaler(self.kind)
        return torch.cuda.amp.GradScaler()  # PyTorch before 2.3

    def times_of(self, step, steps):
        """(wall, CPU) seconds of a turn, which ends when the GPU has finished all its work."""
        wall, cpu = time.perf_counter(), time.process_time()
        for _ in range(steps):
            step()
        if self.is_gpu:
            torch.cuda.synchronize()
        return time.perf_counter() - wall, time.process_time() - cpu

    def free_memory(self):
        """Runs Python's collector: a recorder and an optimizer refer to each other."""
        if self.is_gpu:
            gc.collect()
            torch.cuda.empty_cache()


def sgd(parameters):
    return torch.optim.SGD(parameters, lr=0.01, momentum=0.9)


def plain_step(model, x, y, optimizer):
    def step():
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()

    return step


def mixed_step(device, model, x, y, optimizer, scaler):
    def step():
        optimizer.zero_grad()
        with torch.autocast(device, torch.float16):
            loss = nn.functional.cross_entropy(model(x), y)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()

    return step
