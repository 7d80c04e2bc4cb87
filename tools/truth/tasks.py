# SPDX-License-Identifier: Apache-2.0
"""The training tasks: networks, their data, their optimizers. Nothing is downloaded."""

import dataclasses
import typing

import torch

import data
import networks


@dataclasses.dataclass(frozen=True)
class Task:
    model: typing.Callable  # () -> module
    batches: typing.Callable  # (seed, device) -> function of the step
    loss: typing.Callable  # (model, batch) -> loss
    optimizer: typing.Callable  # (parameters) -> optimizer
    steps: int = 240
    clip: float = None  # gradients are clipped to this norm before the step


def _cross_entropy(model, batch):
    inputs, targets = batch
    outputs = model(inputs)
    return torch.nn.functional.cross_entropy(outputs.flatten(0, -2), targets.flatten())


def _sgd(lr, momentum=0.0):
    return lambda parameters: torch.optim.SGD(parameters, lr=lr, momentum=momentum)


def _adamw(lr):
    return lambda parameters: torch.optim.AdamW(parameters, lr=lr)


def _adam(lr):
    return lambda parameters: torch.optim.Adam(parameters, lr=lr)


def tasks(dry):
    """Returns {name: Task}. The tasks are tiny in a dry run."""
    size = 8 if dry else 32
    cnn = Task(networks.cnn, data.digits(16 if dry else 128), _cross_entropy, _sgd(0.05))
    found = {
        "cnn": cnn,
        "clip": dataclasses.replace(cnn, clip=0.1),
        "resnet": Task(lambda: networks.ResNet(8 if dry else 64), data.gratings(size, 32),
                       _cross_entropy, _sgd(0.05, 0.9)),
        "lm": Task(lambda: networks.LanguageModel(*((32, 1, 2) if dry else (384, 6, 6))),
                   data.text(*((2, 16) if dry else (8, 128))), _cross_entropy, _adamw(3e-4)),
        "lstm": Task(lambda: networks.Lstm(32 if dry else 512), data.text(*((4, 8) if dry else (64, 64))),
                     _cross_entropy, _adam(1e-3)),
        "detector": Task(lambda: networks.Detector(8 if dry else 64), data.squares(4 if dry else 32),
                         networks.detector_loss, _sgd(0.1)),
    }
    return {name: dataclasses.replace(task, steps=12) for name, task in found.items()} if dry else found
