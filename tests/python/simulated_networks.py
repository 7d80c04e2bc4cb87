# SPDX-License-Identifier: Apache-2.0
"""The simulator's networks in PyTorch, from their papers and docs/simulate.md, with names as there;
and what tests/sim/write_gradients.cpp writes of one batch."""

import pathlib
import subprocess
from collections import OrderedDict

import torch
from safetensors import safe_open
from torch import nn
from torch.nn import functional

from program import BUILD


def written(folder, network, *, precision="fp32", scale=1, batches=1, size=8):
    """({name: tensor}, loss)"""
    path = pathlib.Path(folder) / f"{network}.safetensors"
    subprocess.run([BUILD / "bin/write_gradients", network, path, precision, str(scale),
                    str(batches), str(size)], check=True)
    with safe_open(path, framework="pt") as file:
        return {name: file.get_tensor(name) for name in file.keys()}, float(file.metadata()["loss"])


def images(x):
    """(N, H, W, C), as the simulator has them, to (N, C, H, W)."""
    return x.permute(0, 3, 1, 2).contiguous()


class PixelsFirst(nn.Module):
    """(N, C, H, W) to rows in the simulator's order, channels last."""

    def forward(self, x):
        return x.permute(0, 2, 3, 1).flatten(1)


def mlp():
    return nn.Sequential(OrderedDict(
        rows=PixelsFirst(), fc1=nn.Linear(32, 64), relu1=nn.ReLU(), fc2=nn.Linear(64, 32),
        relu2=nn.ReLU(), fc3=nn.Linear(32, 10)))


def lenet():
    """For images of 8 x 8 pixels."""
    return nn.Sequential(OrderedDict(
        conv1=nn.Conv2d(1, 6, 3, padding=1), relu1=nn.ReLU(), pool1=nn.MaxPool2d(2),
        conv2=nn.Conv2d(6, 16, 3, padding=1), relu2=nn.ReLU(), pool2=nn.MaxPool2d(2),
        rows=PixelsFirst(), fc1=nn.Linear(64, 120), relu3=nn.ReLU(), fc2=nn.Linear(120, 10)))


def exact():
    return nn.Sequential(OrderedDict(
        conv1=nn.Conv2d(2, 4, 3, padding=1), relu1=nn.ReLU(), pool1=nn.MaxPool2d(2),
        conv2=nn.Conv2d(4, 4, 3, padding=1), relu2=nn.ReLU(), rows=PixelsFirst(),
        fc=nn.Linear(64, 4)))


class Block(nn.Module):
    def __init__(self, before, channels, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(before, channels, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(channels)
        self.added, self.stride = channels - before, stride

    def forward(self, x):
        y = self.bn2(self.conv2(functional.relu(self.bn1(self.conv1(x)))))
        shortcut = functional.pad(x[:, :, ::self.stride, ::self.stride], (0, 0, 0, 0, 0, self.added))
        return functional.relu(y + shortcut)


class ResNet20(nn.Module):
    """He et al. 2015, section 4.2, n = 3, option A."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 16, 3, 1, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(16)
        before = 16
        for stage, channels in enumerate((16, 32, 64)):
            blocks = []
            for i in range(3):
                blocks.append(Block(before, channels, 2 if stage and not i else 1))
                before = channels
            setattr(self, f"layer{stage + 1}", nn.Sequential(*blocks))
        self.fc = nn.Linear(64, 10)

    def forward(self, x):
        x = functional.relu(self.bn1(self.conv1(x)))
        x = self.layer3(self.layer2(self.layer1(x)))
        return self.fc(x.mean((2, 3)))


class CharLstm(nn.Module):
    """Characters (T, N), time first; rows of logits in that order."""

    def __init__(self, characters):
        super().__init__()
        self.embedding = nn.Embedding(characters, 32)
        self.lstm = nn.LSTM(32, 128)
        self.fc = nn.Linear(128, characters)

    def forward(self, ids):
        return self.fc(self.lstm(self.embedding(ids))[0].flatten(0, 1))


class TinySsd(nn.Module):
    """Rows of confidences and of offsets, of every image its anchors: of both maps one after the
    other, row by row, the ratios of a cell next to each other."""

    RATIOS, SCALES, CLASSES = (1.0, 2.0, 0.5), (0.25, 0.42), 4

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 16, 3, 1, 1)
        self.conv2 = nn.Conv2d(16, 32, 3, 1, 1)
        self.conv3 = nn.Conv2d(32, 64, 3, 1, 1)
        self.conv4 = nn.Conv2d(64, 64, 3, 2, 1)
        for i in (1, 2):
            setattr(self, f"conf{i}", nn.Conv2d(64, 3 * self.CLASSES, 3, 1, 1))
            setattr(self, f"loc{i}", nn.Conv2d(64, 3 * 4, 3, 1, 1))

    def forward(self, x):
        x = functional.max_pool2d(functional.relu(self.conv1(x)), 2)
        x = functional.max_pool2d(functional.relu(self.conv2(x)), 2)
        fine = functional.relu(self.conv3(x))
        maps = (fine, functional.relu(self.conv4(fine)))

        def heads(name, width):
            rows = [getattr(self, f"{name}{i + 1}")(m).permute(0, 2, 3, 1).reshape(len(m), -1, width)
                    for i, m in enumerate(maps)]
            return torch.cat(rows, 1)

        return heads("conf", self.CLASSES), heads("loc", 4), [m.shape[2:] for m in maps]


def default_boxes(shapes):
    """(anchors, 4): centre and size."""
    boxes = []
    for (height, width), scale in zip(shapes, TinySsd.SCALES):
        for row in range(height):
            for column in range(width):
                for ratio in TinySsd.RATIOS:
                    boxes.append([(column + 0.5) / width, (row + 0.5) / height,
                                  scale * ratio ** 0.5, scale / ratio ** 0.5])
    return torch.tensor(boxes, dtype=torch.float64)


def overlaps(corners, boxes):
    """Intersection over union of (anchors, 4) and (boxes, 4), corners."""
    low = torch.maximum(corners[:, None, :2], boxes[None, :, :2])
    high = torch.minimum(corners[:, None, 2:], boxes[None, :, 2:])
    shared = (high - low).clamp(min=0).prod(2)
    area = [(b[:, 2:] - b[:, :2]).prod(1) for b in (corners, boxes)]
    return shared / (area[0][:, None] + area[1][None, :] - shared)


def ssd_loss(confidences, offsets, shapes, boxes):
    """Liu et al. 2016, equations 1 to 3: matching at 0.5 and of each box its best anchor, three
    negatives to a match in every image, over the number of matches."""
    anchors = default_boxes(shapes)
    corners = torch.cat([anchors[:, :2] - anchors[:, 2:] / 2, anchors[:, :2] + anchors[:, 2:] / 2], 1)
    corners = corners.float().double()  # as boxes are given: many overlaps are equal but for that
    total, matches = 0, 0
    for scores, moves, truth in zip(confidences, offsets, boxes.double()):
        truth = truth[truth[:, 4] >= 0]
        shared = overlaps(corners, truth[:, :4])
        best, match = shared.max(1)
        match[best < 0.5] = -1
        match[shared.numpy().argmax(0)] = torch.arange(len(truth))  # the first of equal ones
        positive = match >= 0
        labels = torch.zeros(len(anchors), dtype=torch.long)
        labels[positive] = truth[match[positive], 4].long() + 1
        losses = functional.cross_entropy(scores, labels, reduction="none")
        background = torch.logsumexp(scores.detach().double(), 1) - scores.detach()[:, 0]
        negatives = torch.where(positive, -1.0, background)
        hard = negatives.sort(descending=True, stable=True)[1][:3 * int(positive.sum())]
        hard = hard[~positive[hard]]
        box, anchor = truth[match[positive], :4], anchors[positive]
        target = torch.cat([((box[:, :2] + box[:, 2:]) / 2 - anchor[:, :2]) / anchor[:, 2:],
                            ((box[:, 2:] - box[:, :2]) / anchor[:, 2:]).log()], 1).float()
        total = (total + losses[positive].sum() + losses[hard].sum()
                 + functional.smooth_l1_loss(moves[positive], target, reduction="sum"))
        matches += int(positive.sum())
    return total / max(matches, 1)


def model_and_loss(network, tensors):
    """A network and its loss on the batch that was written."""
    if network == "charlstm":
        model = CharLstm(tensors["weight/fc.bias"].numel())
        ids = tensors["batch-0/ids"].long().reshape(32, -1)
        return model, lambda: functional.cross_entropy(model(ids), tensors["batch-0/labels"].long())
    x = images(tensors["batch-0/inputs"])
    model = {"mlp": mlp, "lenet": lenet, "resnet20": ResNet20, "tinyssd": TinySsd}[network]()
    if network == "tinyssd":
        return model, lambda: ssd_loss(*model(x), tensors["batch-0/boxes"])
    return model, lambda: functional.cross_entropy(model(x), tensors["batch-0/labels"].long())
