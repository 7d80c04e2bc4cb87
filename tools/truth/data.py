# SPDX-License-Identifier: Apache-2.0
"""Reproducible batches as functions of the step: (seed, device) -> (step -> batch)."""

import functools
import math
import os
import pathlib

import torch


def _generator(seed, step, device):
    return torch.Generator(device).manual_seed(1_000_003 * seed + step)


def digits(count):
    """scikit-learn's digits, 8 x 8."""
    def batches(seed, device):
        from sklearn.datasets import load_digits
        images, labels = load_digits(return_X_y=True)
        images = torch.tensor(images, dtype=torch.float32, device=device).reshape(-1, 1, 8, 8) / 16
        labels = torch.tensor(labels, device=device)

        def batch(step):
            chosen = torch.randint(len(labels), (count,), generator=_generator(seed, step, device),
                                   device=device)
            return images[chosen], labels[chosen]
        return batch
    return batches


def gratings(count, size):
    """Images of stripes in ten directions, with noise."""
    def batches(seed, device):
        line = torch.arange(size, device=device, dtype=torch.float32)
        y, x = torch.meshgrid(line, line, indexing="ij")

        def batch(step):
            random = _generator(seed, step, device)
            labels = torch.randint(10, (count,), generator=random, device=device)
            angle = (labels * (math.pi / 10)).view(-1, 1, 1)
            stripes = torch.sin(0.5 * (x * angle.cos() + y * angle.sin()))
            noise = torch.randn(count, 3, size, size, generator=random, device=device)
            return stripes.unsqueeze(1) + noise, labels
        return batch
    return batches


@functools.lru_cache(maxsize=1)
def _library_text():
    files = sorted(pathlib.Path(os.__file__).parent.glob("*.py"))
    text = b"".join(file.read_bytes() for file in files)[:4_000_000]
    return torch.frombuffer(bytearray(text), dtype=torch.uint8).long()


def text(count, length):
    """The bytes of Python's own standard library."""
    def batches(seed, device):
        everything = _library_text().to(device)

        def batch(step):
            starts = torch.randint(len(everything) - length - 1, (count, 1),
                                   generator=_generator(seed, step, device), device=device)
            pieces = everything[starts + torch.arange(length + 1, device=device)]
            return pieces[:, :-1], pieces[:, 1:]
        return batch
    return batches


def squares(count, size=64, cell=4):
    """Noise with one bright square. Targets: the cell with its corner, and its size."""
    def batches(seed, device):
        cells = size // cell

        def batch(step):
            random = _generator(seed, step, device)
            images = 0.5 * torch.randn(count, 3, size, size, generator=random, device=device)
            corner = torch.randint(cells - 4, (count, 2), generator=random, device=device)
            side = torch.randint(2, 5, (count,), generator=random, device=device)
            line = torch.arange(size, device=device) // cell
            rows = (line >= corner[:, :1]) & (line < corner[:, :1] + side[:, None])
            columns = (line >= corner[:, 1:]) & (line < corner[:, 1:] + side[:, None])
            images += 2.0 * (rows[:, None, :, None] & columns[:, None, None, :])
            present = torch.zeros(count, cells, cells, device=device)
            present[torch.arange(count, device=device), corner[:, 0], corner[:, 1]] = 1
            return images, present, side.float()
        return batch
    return batches
