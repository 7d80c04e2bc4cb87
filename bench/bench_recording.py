# SPDX-License-Identifier: Apache-2.0
"""What halfscope.torch.Recorder adds to a training step, in CPU time.

    bench_recording.py [--json FILE] [--pairs N] [--steps N]

Two copies of a network train in turns, one of them recorded. A pair of turns gives a ratio of CPU
times, so that what else the machine does is in both. Printed are the median and the quartiles of the
pairs; one thread.
"""

import argparse
import json
import pathlib
import platform
import statistics
import tempfile
import time

import torch
from torch import nn

from halfscope.torch import Recorder


def convolutions():
    """Two convolutions with batch normalization; 32 images of 32 x 32."""
    model = nn.Sequential(
        nn.Conv2d(3, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(),
        nn.Conv2d(32, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 10))
    return model, torch.randn(32, 3, 32, 32), torch.arange(32) % 10


def transformer():
    """Two layers of a transformer, 128 wide; 4 sequences of 32 words out of 1,000."""
    class Words(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding = nn.Embedding(1000, 128)
            layer = nn.TransformerEncoderLayer(128, 4, 512, dropout=0.0, batch_first=True)
            self.layers = nn.TransformerEncoder(layer, 2)
            self.head = nn.Linear(128, 1000)

        def forward(self, words):
            return self.head(self.layers(self.embedding(words))).flatten(0, 1)

    words = torch.randint(1000, (4, 32))
    return Words(), words, words.flatten().roll(-1)


def perceptron():
    """Three small layers, one example: mostly the calls, hardly any arithmetic."""
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(),
                          nn.Linear(64, 10))
    return model, torch.randn(1, 64), torch.zeros(1, dtype=torch.long)


NETWORKS = (convolutions, transformer, perceptron)


def trainer(make):
    torch.manual_seed(1)
    model, x, y = make()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)

    def step():
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()

    return model, optimizer, step


def cpu_time(step, steps):
    begin = time.process_time()
    for _ in range(steps):
        step()
    return time.process_time() - begin


def measure(make, settings, pairs, steps):
    """Of each pair: how much more CPU time the recorded steps took, in percent, and in milliseconds
    a step."""
    model, optimizer, recorded = trainer(make)
    _, _, plain = trainer(make)
    found = []
    with tempfile.TemporaryDirectory() as folder:
        with Recorder(model, optimizer, pathlib.Path(folder) / "run", **settings):
            cpu_time(plain, 2), cpu_time(recorded, 2)  # memory is allocated, kernels are chosen
            for pair in range(pairs):
                order = [plain, recorded] if pair % 2 == 0 else [recorded, plain]
                times = {step: cpu_time(step, steps) for step in order}
                more = times[recorded] - times[plain]
                found.append((100 * more / times[plain], 1000 * more / steps))
    return zip(*found)


def processor():
    """Its name, where Linux tells it."""
    try:
        lines = pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.machine()


WAYS = {"not recorded": {"every": [-1]}, "recorded": {"every": 1},
        "recorded and sampled": {"every": 1, "sample_every": 1}}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json")
    parser.add_argument("--pairs", type=int, default=60)
    parser.add_argument("--steps", type=int, default=1, help="of a turn")
    options = parser.parse_args()
    torch.set_num_threads(1)
    print(f"PyTorch {torch.__version__}, {processor()}")
    results = []
    for make in NETWORKS:
        for way, settings in WAYS.items():
            percent, milliseconds = measure(make, settings, options.pairs, options.steps)
            low, middle, high = statistics.quantiles(percent, n=4)
            each = statistics.median(milliseconds)
            name = f"recorder, {make.__name__}, steps {way}"
            results.append({"name": name, "threads": 1, "value": middle, "unit": "% more CPU time",
                            "quartiles": [low, high], "milliseconds": each,
                            "torch": torch.__version__})
            print(f"{name:<55} {middle:7.1f} % more CPU time ({low:.1f} to {high:.1f}), "
                  f"{each:.2f} ms a step", flush=True)
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(results, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
