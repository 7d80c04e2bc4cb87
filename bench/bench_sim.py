# SPDX-License-Identifier: Apache-2.0
"""Steps per second of the simulator's networks in PyTorch: forward, backward and SGD in binary32.

    bench_sim.py [--json FILE] [--rounds N]

The shapes are those of bench_sim.cpp. Labels are random: tinyssd does not match anchors to
boxes here.
"""

import argparse
import json
import os
import time

BATCH = {"mlp": 32, "lenet": 32, "resnet20": 32, "tinyssd": 16, "charlstm": 32}


def networks(torch):
    """Functions by network name: each returns a module, and a function of the module that computes
    a loss."""
    nn, functional = torch.nn, torch.nn.functional

    class Block(nn.Module):
        def __init__(self, before, channels, stride):
            super().__init__()
            self.stride, self.more = stride, channels - before
            self.conv1 = nn.Conv2d(before, channels, 3, stride, 1, bias=False)
            self.bn1 = nn.BatchNorm2d(channels)
            self.conv2 = nn.Conv2d(channels, channels, 3, 1, 1, bias=False)
            self.bn2 = nn.BatchNorm2d(channels)

        def forward(self, x):
            y = functional.relu(self.bn1(self.conv1(x)))
            y = self.bn2(self.conv2(y))
            if self.more:
                x = functional.pad(x[:, :, :: self.stride, :: self.stride], (0, 0, 0, 0, 0, self.more))
            return functional.relu(y + x)

    class Detector(nn.Module):
        def __init__(self):
            super().__init__()
            self.trunk = nn.Sequential(
                nn.Conv2d(3, 16, 3, 1, 1), nn.ReLU(), nn.MaxPool2d(2),
                nn.Conv2d(16, 32, 3, 1, 1), nn.ReLU(), nn.MaxPool2d(2),
                nn.Conv2d(32, 64, 3, 1, 1), nn.ReLU(),
            )  # fmt: skip
            self.coarse = nn.Sequential(nn.Conv2d(64, 64, 3, 2, 1), nn.ReLU())
            self.conf = nn.ModuleList(nn.Conv2d(64, 3 * 4, 3, 1, 1) for _ in range(2))
            self.loc = nn.ModuleList(nn.Conv2d(64, 3 * 4, 3, 1, 1) for _ in range(2))

        def forward(self, x):
            fine = self.trunk(x)
            maps = [fine, self.coarse(fine)]
            heads = [
                [head(y).permute(0, 2, 3, 1).reshape(-1, 4) for head, y in zip(heads, maps)]
                for heads in (self.conf, self.loc)
            ]
            return [torch.cat(parts) for parts in heads]

    class Characters(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding = nn.Embedding(32, 32)
            self.lstm = nn.LSTM(32, 128)
            self.fc = nn.Linear(128, 32)

        def forward(self, ids):
            return self.fc(self.lstm(self.embedding(ids))[0]).flatten(0, 1)

    def classified(module, x, classes, rows):
        labels = torch.randint(classes, (rows,))
        return module, lambda: functional.cross_entropy(module(x), labels)

    def mlp(n):
        sizes = [nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10)]
        return classified(nn.Sequential(*sizes), torch.randn(n, 32), 10, n)

    def lenet(n):
        module = nn.Sequential(
            nn.Conv2d(3, 6, 5, 1, 2), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
            nn.Linear(16 * 6 * 6, 120), nn.ReLU(), nn.Linear(120, 10),
        )  # fmt: skip
        return classified(module, torch.randn(n, 3, 32, 32), 10, n)

    def resnet20(n):
        layers = [nn.Conv2d(3, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU()]
        before = 16
        for channels in (16, 32, 64):
            for i in range(3):
                layers.append(Block(before, channels, 2 if channels > 16 and i == 0 else 1))
                before = channels
        layers += [nn.AvgPool2d(8), nn.Flatten(), nn.Linear(64, 10)]
        return classified(nn.Sequential(*layers), torch.randn(n, 3, 32, 32), 10, n)

    def tinyssd(n):
        module, x = Detector(), torch.randn(n, 3, 48, 48)
        rows = n * 3 * (12 * 12 + 6 * 6)
        labels, boxes = torch.randint(4, (rows,)), torch.randn(rows, 4)

        def loss():
            confidences, offsets = module(x)
            return functional.cross_entropy(confidences, labels) + functional.smooth_l1_loss(offsets, boxes)

        return module, loss

    def charlstm(n):
        return classified(Characters(), torch.randint(32, (32, n)), 32, 32 * n)

    return {"mlp": mlp, "lenet": lenet, "resnet20": resnet20, "tinyssd": tinyssd, "charlstm": charlstm}


def steps_a_second(torch, make, batch, rounds, now):
    torch.manual_seed(1)
    module, loss = make(batch)
    optimizer = torch.optim.SGD(module.parameters(), lr=0.001)

    def step():
        optimizer.zero_grad()
        loss().backward()
        optimizer.step()

    step()
    start = time.perf_counter()
    step()
    steps = max(1, int(0.1 / (time.perf_counter() - start)))
    best = float("inf")
    for _ in range(rounds):
        start = now()
        for _ in range(steps):
            step()
        best = min(best, now() - start)
    return steps / best


def measured(rounds):
    try:
        import torch
    except ImportError:
        print("PyTorch is not installed: nothing to compare with")
        return []
    results = []
    for name, make in networks(torch).items():
        for threads in sorted({1, len(os.sched_getaffinity(0))}):
            torch.set_num_threads(threads)
            # On one thread, CPU time is measured as in bench_sim: it is independent of other load.
            now = time.process_time if threads == 1 else time.perf_counter
            speed = steps_a_second(torch, make, BATCH[name], rounds, now)
            version = torch.__version__
            results.append(
                {
                    "name": f"{name}, batch {BATCH[name]}, PyTorch {version} fp32",
                    "threads": threads,
                    "value": speed,
                    "unit": "steps/s",
                }
            )
    return results


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--json")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    results = measured(options.rounds)
    for result in results:
        print(f"{result['name']:<58} {result['threads']:7} {result['value']:10.1f} {result['unit']}")
    if options.json:
        with open(options.json, "w") as file:
            json.dump(results, file, indent=1)


if __name__ == "__main__":
    main()
