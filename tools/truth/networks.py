# SPDX-License-Identifier: Apache-2.0
"""Small networks of common kinds."""

import torch
from torch import nn
from torch.nn import functional


def cnn():
    return nn.Sequential(
        nn.Conv2d(1, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(),
        nn.Conv2d(32, 64, 3, stride=2, padding=1), nn.BatchNorm2d(64), nn.ReLU(),
        nn.Flatten(), nn.Linear(64 * 16, 10))


class Block(nn.Module):
    """A residual block as in torchvision: one in-place ReLU that is used twice."""

    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.down = None
        if stride > 1 or inputs != outputs:
            self.down = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False),
                                      nn.BatchNorm2d(outputs))

    def forward(self, x):
        y = self.relu(self.bn1(self.conv1(x)))
        y = self.bn2(self.conv2(y))
        y += x if self.down is None else self.down(x)
        return self.relu(y)


class ResNet(nn.Module):
    """ResNet-18 with a stem for small images."""

    def __init__(self, width):
        super().__init__()
        self.conv = nn.Conv2d(3, width, 3, padding=1, bias=False)
        self.bn = nn.BatchNorm2d(width)
        self.relu = nn.ReLU(inplace=True)
        blocks = []
        for stage in range(4):
            outputs = width << stage
            inputs = outputs if stage == 0 else outputs // 2
            blocks += [Block(inputs, outputs, 1 if stage == 0 else 2), Block(outputs, outputs, 1)]
        self.blocks = nn.Sequential(*blocks)
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(width * 8, 10)

    def forward(self, x):
        x = self.blocks(self.relu(self.bn(self.conv(x))))
        return self.fc(self.pool(x).flatten(1))


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.proj = nn.Linear(width, width)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = self.qkv(x).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-2, -1) * (width // self.heads) ** -0.5
        later = torch.ones(length, length, dtype=torch.bool, device=x.device).triu(1)
        weights = scores.masked_fill(later, float("-inf")).softmax(-1)
        return self.proj((weights @ v).transpose(1, 2).reshape(batch, length, width))


class Layer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.norm1, self.attention = nn.LayerNorm(width), Attention(width, heads)
        self.norm2 = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class LanguageModel(nn.Module):
    """A transformer over bytes."""

    def __init__(self, width, layers, heads):
        super().__init__()
        self.tokens, self.places = nn.Embedding(256, width), nn.Embedding(256, width)
        self.layers = nn.Sequential(*(Layer(width, heads) for _ in range(layers)))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, 256)

    def forward(self, x):
        x = self.tokens(x) + self.places(torch.arange(x.shape[1], device=x.device))
        return self.head(self.norm(self.layers(x)))


class Lstm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.tokens = nn.Embedding(256, 128)
        self.lstm = nn.LSTM(128, width, num_layers=2, batch_first=True)
        self.head = nn.Linear(width, 256)

    def forward(self, x):
        return self.head(self.lstm(self.tokens(x))[0])


class Detector(nn.Module):
    """Predicts, for each cell, a logit for an object and the object's size."""

    def __init__(self, width):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(3, width, 3, 2, 1), nn.BatchNorm2d(width), nn.ReLU(),
            nn.Conv2d(width, 2 * width, 3, 2, 1), nn.BatchNorm2d(2 * width), nn.ReLU(),
            nn.Conv2d(2 * width, 2 * width, 3, 1, 1), nn.ReLU())
        self.objects = nn.Conv2d(2 * width, 1, 3, padding=1)
        self.sizes = nn.Conv2d(2 * width, 1, 3, padding=1)
        nn.init.constant_(self.objects.bias, -4.6)

    def forward(self, x):
        x = self.body(x)
        return self.objects(x).squeeze(1), self.sizes(x).squeeze(1)


def detector_loss(model, batch):
    """Returns the focal loss averaged over all cells, plus a small loss of sizes."""
    images, present, side = batch
    logits, sizes = (output.float() for output in model(images))
    plain = functional.binary_cross_entropy_with_logits(logits, present, reduction="none")
    right = torch.exp(-plain)
    focal = (1 - right) ** 2 * plain
    wrong_size = functional.smooth_l1_loss(sizes, side[:, None, None] * present, reduction="none")
    return focal.mean() + 0.01 * (wrong_size * present).mean()
