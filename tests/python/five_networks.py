# SPDX-License-Identifier: Apache-2.0
"""Five small networks with their data, for a CPU: a CNN with batch normalization, a GPT with a bias
of queries, keys and values, an LSTM, a detector with a small loss, a mixture of experts behind
torch.nn.MultiheadAttention. Each runs in the formats of its parameters."""

import torch
from torch import nn
from torch.nn import functional

NORMS = (nn.BatchNorm2d, nn.LayerNorm)


def cast(x, module):
    """x in the format of the module's own parameters, or as it is."""
    own = next(module.parameters(), None)
    return x if own is None or not x.is_floating_point() else x.to(own.dtype)


def wide(x):
    """x in FP32, or in FP64 where it is."""
    return x if x.dtype == torch.float64 else x.float()


class Network(nn.Module):
    """A network whose modules each run in their own format: f(x) casts before it calls."""

    def call(self, module, x, *more):
        return module(cast(x, module), *(cast(m, module) for m in more))


class Cnn(Network):
    """Biases in front of batch normalization have gradients of zero."""

    noise = {"first.bias", "second.bias"}

    def __init__(self):
        super().__init__()
        self.first, self.norm1 = nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8)
        self.second, self.norm2 = nn.Conv2d(8, 8, 3), nn.BatchNorm2d(8)
        self.head = nn.Linear(8 * 16, 10)

    def forward(self, x):
        x = torch.relu(self.call(self.norm1, self.call(self.first, x)))
        x = torch.relu(self.call(self.norm2, self.call(self.second, x)))
        return wide(self.call(self.head, x.flatten(1)))

    def data(self):
        return torch.randn(32, 3, 8, 8), torch.randint(0, 10, (32,))

    def loss(self, x, y):
        return functional.cross_entropy(self(x), y)


class Gpt(Network):
    """The keys' third of qkv.bias has a gradient of zero."""

    noise = {"qkv.bias"}

    def __init__(self, width=32, heads=4, words=20):
        super().__init__()
        self.heads, self.words = heads, words
        self.embed, self.norm1 = nn.Embedding(words, width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.norm2, self.up = nn.LayerNorm(width), nn.Linear(width, 4 * width)
        self.down, self.head = nn.Linear(4 * width, width), nn.Linear(width, words)

    def forward(self, tokens):
        x = self.embed(tokens)
        n, t, width = x.shape
        qkv = wide(self.call(self.qkv, self.call(self.norm1, x)))
        q, k, v = (z.view(n, t, self.heads, -1).transpose(1, 2) for z in qkv.chunk(3, -1))
        scores = q @ k.transpose(-1, -2) / (width / self.heads) ** 0.5
        scores = scores.masked_fill(torch.ones(t, t).triu(1).bool(), -1e4)
        mixed = (torch.softmax(scores, -1) @ v).transpose(1, 2).reshape(n, t, width)
        x = x + self.call(self.out, mixed)
        x = x + self.call(self.down, torch.relu(self.call(self.up, self.call(self.norm2, x))))
        return wide(self.call(self.head, x)).flatten(0, 1)

    def data(self):
        return torch.randint(0, self.words, (16, 12)), torch.randint(0, self.words, (16 * 12,))

    def loss(self, x, y):
        return functional.cross_entropy(self(x), y)


class Lstm(Network):
    noise = set()

    def __init__(self):
        super().__init__()
        self.rnn, self.norm, self.head = nn.LSTM(4, 24, batch_first=True), nn.LayerNorm(24), nn.Linear(24, 4)

    def forward(self, x):
        last = self.call(self.rnn, x)[0][:, -1]
        return wide(self.call(self.head, self.call(self.norm, last)))

    def data(self):
        return torch.randn(32, 8, 4), torch.randint(0, 4, (32,))

    def loss(self, x, y):
        return functional.cross_entropy(self(x), y)


class Detector(Network):
    """Three heads over a feature map, whose losses are added and multiplied by 1e-4."""

    noise = {"trunk.bias"}

    def __init__(self):
        super().__init__()
        self.trunk, self.norm = nn.Conv2d(3, 12, 3, padding=1), nn.BatchNorm2d(12)
        self.deep = nn.Conv2d(12, 16, 3, stride=2, padding=1)
        self.boxes, self.classes, self.objects = nn.Conv2d(16, 4, 1), nn.Conv2d(16, 5, 1), nn.Conv2d(16, 1, 1)

    def forward(self, x):
        x = torch.relu(self.call(self.norm, self.call(self.trunk, x)))
        x = torch.relu(self.call(self.deep, x))
        return [wide(self.call(head, x)) for head in (self.boxes, self.classes, self.objects)]

    def data(self):
        return torch.randn(8, 3, 16, 16), (torch.randn(8, 4, 8, 8), torch.randint(0, 5, (8, 8, 8)),
                                           torch.rand(8, 1, 8, 8).round())

    def loss(self, x, y):
        boxes, classes, objects = self(x)
        return 1e-4 * (functional.smooth_l1_loss(boxes, y[0]) + functional.cross_entropy(classes, y[1]) +
                       functional.binary_cross_entropy_with_logits(objects, y[2]))


class Experts(Network):
    """Four experts, one for each token, behind attention of PyTorch's own module."""

    noise = {"attention.in_proj_bias"}

    def __init__(self, width=32):
        super().__init__()
        self.enter, self.norm1 = nn.Linear(8, width), nn.LayerNorm(width)
        self.attention, self.norm2 = nn.MultiheadAttention(width, 4, batch_first=True), nn.LayerNorm(width)
        self.gate = nn.Linear(width, 4)
        self.experts = nn.ModuleList(nn.Linear(width, width) for _ in range(4))
        self.head = nn.Linear(width, 3)

    def forward(self, x):
        x = self.call(self.enter, x)
        y = self.call(self.norm1, x)
        x = x + self.call(self.attention, y, y, y)[0]
        y = self.call(self.norm2, x)
        chance = torch.softmax(wide(self.call(self.gate, y)), -1)
        best = chance.argmax(-1, keepdim=True)
        taken = torch.zeros_like(chance).scatter(-1, best, 1.0) * chance
        x = x + sum(taken[..., i:i + 1] * torch.relu(wide(self.call(e, y)))
                    for i, e in enumerate(self.experts))
        return wide(self.call(self.head, x.mean(1)))

    def data(self):
        return torch.randn(24, 10, 8), torch.randint(0, 3, (24,))

    def loss(self, x, y):
        return functional.cross_entropy(self(x), y)


NETWORKS = [Cnn, Gpt, Lstm, Detector, Experts]
