# SPDX-License-Identifier: Apache-2.0
"""Records a network twice, as on a CPU and as on a GPU: emulated_gpu_runs.py NETWORK FOLDER. The logs
are FOLDER/cpu and FOLDER/gpu. Prints a JSON object: see main().

Run with PYTHONPATH at the package on the emulated device. As on a GPU means that tensors in CPU
memory say that they are on one; PyTorch's kernels run on the CPU at once, as the emulated device's.
"""

import contextlib
import ctypes
import json
import os
import sys

import torch
from torch import nn
from torch.nn import functional as F

from halfscope import _halfscope
from halfscope.torch import Recorder, modules, updates

EMULATED = ctypes.CDLL(_halfscope.__file__)
EMULATED.halfscope_emulated_stream.restype = ctypes.c_void_p
EMULATED.halfscope_emulated_problems.restype = ctypes.c_char_p
EMULATED.halfscope_emulated_launches.restype = ctypes.c_uint64
STREAM = EMULATED.halfscope_emulated_stream()


def launches():
    return EMULATED.halfscope_emulated_launches()


@contextlib.contextmanager
def replaced(owner, **values):
    kept = {name: vars(owner)[name] for name in values if name in vars(owner)}
    for name, value in values.items():
        setattr(owner, name, value)
    try:
        yield
    finally:
        for name in values:
            setattr(owner, name, kept[name]) if name in kept else delattr(owner, name)


def on_the_cpu(make):
    return lambda *sizes, pin_memory=False, device=None, **settings: make(*sizes, **settings)


@contextlib.contextmanager
def on_a_gpu():
    """A context in which tensors say that they are on GPU 0. They keep their `device`, by which
    PyTorch's own Python code makes further tensors."""
    with replaced(torch.Tensor, is_cuda=True, is_cpu=False, get_device=lambda tensor: 0), \
            replaced(torch, empty=on_the_cpu(torch.empty), zeros=on_the_cpu(torch.zeros)), \
            replaced(torch._C, _cuda_getCurrentRawStream=lambda device: STREAM):
        yield


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attn, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        q, k, v = self.attn(self.ln_1(x)).chunk(3, -1)
        x = x + self.proj((q @ k.transpose(1, 2)).softmax(-1) @ v)
        return x + self.mlp(self.ln_2(x))


class GPT(nn.Module):
    def __init__(self, blocks=2, width=8, tokens=4, words=16):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(words, width), nn.Embedding(tokens, width)
        self.h = nn.Sequential(*(Block(width) for _ in range(blocks)))
        self.ln_f, self.lm_head = nn.LayerNorm(width), nn.Linear(width, words, bias=False)
        self.words, self.tokens = words, tokens

    def forward(self, idx):
        return self.lm_head(self.ln_f(self.h(self.wte(idx) + self.wpe(torch.arange(self.tokens)))))

    def batch(self):
        return (torch.randint(self.words, (2, self.tokens)) for _ in range(2))

    def loss(self, idx, targets):
        return F.cross_entropy(self(idx).flatten(0, 1), targets.flatten())


class Small(nn.Module):
    """An in-place operation on an activation, and a layer that is called twice."""

    def __init__(self):
        super().__init__()
        self.first, self.relu, self.twice, self.last = (
            nn.Linear(6, 8), nn.ReLU(inplace=True), nn.Linear(8, 8), nn.Linear(8, 3))

    def batch(self):
        return torch.randn(5, 6), torch.randint(3, (5,))

    def loss(self, x, targets):
        x = self.relu(self.first(x))
        return F.cross_entropy(self.last(self.twice(self.twice(x))), targets)

    forward = loss


class Images(nn.Module):
    """Weights and activations whose memory is in the order of images, rows, columns, channels."""

    def __init__(self):
        super().__init__()
        self.conv, self.last = nn.Conv2d(3, 4, 3), nn.Linear(4 * 9, 3)
        self.to(memory_format=torch.channels_last)

    def batch(self):
        return torch.randn(2, 3, 5, 5).contiguous(memory_format=torch.channels_last), torch.randint(3, (2,))

    def loss(self, x, targets):
        return F.cross_entropy(self.last(self.conv(x).flatten(1)), targets)


def bf16_gpt():
    return GPT().to(torch.bfloat16)


RUNS = {  # name: (network, optimizer, microbatches, sets gradients to None)
    "gpt": (GPT, torch.optim.AdamW, 1, True),
    "gpt, microbatches": (GPT, torch.optim.Adam, 3, False),
    "gpt, BF16": (bf16_gpt, torch.optim.SGD, 1, True),
    "small": (Small, torch.optim.SGD, 1, True),
    "images": (Images, torch.optim.SGD, 1, True),
    "small, groups": (Small, torch.optim.SGD, 1, True),
}
STEPS = 4


def train(name, folder, **settings):
    """Returns the kernels started in each step, and the log's size behind each."""
    torch.manual_seed(7)
    make, optimizer, microbatches, to_none = RUNS[name]
    model = make()
    optimizer = optimizer(model.parameters(), lr=0.01, foreach=True)
    started, sizes = [], []
    with Recorder(model, optimizer, folder, on_error="raise", **settings) as recorder:
        for step in range(STEPS):
            before = launches()
            optimizer.zero_grad(set_to_none=to_none)
            for _ in range(microbatches):
                recorder.loss(model.loss(*model.batch())).backward()
            optimizer.step()
            started.append(launches() - before)
            sizes.append(sum(file.stat().st_size for file in os.scandir(folder)))
    return started, sizes


def main():
    """Prints {"started": kernels of each step on the "GPU", "sizes": bytes of the log behind each
    step, "problems": text of the emulated device}."""
    name, folder = sys.argv[1:]
    settings = {"every": 2}
    waiting = 300 if "groups" in name else modules._WAITING_BYTES
    with replaced(updates, has_row=lambda *_: False), \
            replaced(modules, _WAITING_BYTES=waiting):  # the updates of a GPU in both logs
        train(name, f"{folder}/cpu", **settings)
        with on_a_gpu():
            started, sizes = train(name, f"{folder}/gpu", **settings)
    print(json.dumps({"started": started, "sizes": sizes,
                      "problems": EMULATED.halfscope_emulated_problems().decode()}))
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
