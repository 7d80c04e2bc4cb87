# SPDX-License-Identifier: Apache-2.0
"""The networks of bench_recording.py. Each function returns a model, its input and its target."""

import torch
from torch import nn


def convolutions():
    """Two convolutions with batch normalization; 32 images of 32 x 32."""
    model = nn.Sequential(
        nn.Conv2d(3, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(),
        nn.Conv2d(32, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 10))
    return model, torch.randn(32, 3, 32, 32), torch.arange(32) % 10


class Gpt(nn.Module):
    """Predicts each next token from the tokens before it."""

    def __init__(self, tokens, width, heads, layers, length):
        super().__init__()
        self.words = nn.Embedding(tokens, width)
        self.places = nn.Embedding(length, width)
        layer = nn.TransformerEncoderLayer(width, heads, 4 * width, dropout=0.0, activation="gelu",
                                           batch_first=True, norm_first=True)
        self.blocks = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False) \
            if torch.__version__ >= "2" else nn.TransformerEncoder(layer, layers)
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, tokens, bias=False)
        self.register_buffer("future", torch.full((length, length), float("-inf")).triu(1))
        self.register_buffer("place", torch.arange(length))

    def forward(self, tokens):
        x = self.words(tokens) + self.places(self.place)
        return self.head(self.norm(self.blocks(x, self.future))).flatten(0, 1)


def gpt():
    """0.8 M weights: 4 blocks, 128 wide; 8 sequences of 64 characters."""
    tokens = torch.randint(65, (8, 64))
    return Gpt(65, 128, 4, 4, 64), tokens, tokens.roll(-1, 1).flatten()


class Gpt2(Gpt):
    """GPT-2 with its initial weights, and one embedding for input and output."""

    # Without it, PyTorch 2 tests at every call whether the mask is causal, and waits for the GPU.
    causal = {"is_causal": True} if torch.__version__ >= "2" else {}

    def __init__(self, *shape):
        super().__init__(*shape)
        self.head.weight = self.words.weight
        for weight in self.parameters():
            if weight.dim() > 1:
                nn.init.normal_(weight, std=0.02)

    def forward(self, tokens):
        x = self.words(tokens) + self.places(self.place)
        for block in self.blocks.layers:
            x = block(x, self.future, **self.causal)
        return self.head(self.norm(x)).flatten(0, 1)


def gpt2_small():
    """124 M weights: 12 blocks, 768 wide; 8 sequences of 512 tokens. A step is 3 TFLOP."""
    tokens = torch.randint(50257, (8, 512))
    return Gpt2(50257, 768, 12, 12, 512), tokens, tokens.roll(-1, 1).flatten()


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.block = nn.TransformerEncoderLayer(768, 12, 3072, dropout=0.0, activation="gelu",
                                                batch_first=True, norm_first=True)

    def forward(self, x):
        return self.block(x).flatten(0, 1)


def wide_block():
    """One block of a transformer, 768 wide (7.1 M weights); 4 sequences of 64 tokens."""
    return Block(), torch.randn(4, 64, 768), torch.arange(256) % 768


def perceptron():
    """Three small layers and one example: calls dominate, with little arithmetic."""
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(),
                          nn.Linear(64, 10))
    return model, torch.randn(1, 64), torch.zeros(1, dtype=torch.long)


NETWORKS = (convolutions, gpt, wide_block, perceptron)
LARGE = (gpt2_small,)  # on a CPU only by request
OPTIMIZERS = {gpt2_small: lambda parameters: torch.optim.AdamW(parameters, lr=3e-4)}  # others: SGD
