# SPDX-License-Identifier: Apache-2.0
"""What halfscope.torch.Recorder adds to a training step, in wall time and in CPU time of all threads.

    bench_recording.py [--json FILE] [--pairs N] [--networks NAME ...] [--threads N]

Two copies of a network train in turns, one of them recorded. A pair of turns gives a ratio of times,
so that what else the machine does is in both. Printed are the medians of the pairs with their 95 %
intervals (of order statistics, by the binomial distribution).
"""

import argparse
import contextlib
import ctypes
import json
import math
import pathlib
import platform
import statistics
import tempfile
import time

import recording_peers
import torch
from recording_networks import NETWORKS
from torch import nn

from halfscope.torch import Recorder


def keep_memory():
    """Memory that large activations leave is not given back to the system: page faults of taking it
    again would fall on either copy by chance. glibc's mallopt."""
    trim_threshold, mmap_threshold, most = -1, -3, 32 << 20  # glibc takes no larger mmap threshold
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt:
        mallopt(trim_threshold, 2**31 - 1)
        mallopt(mmap_threshold, most)


def trainer(make):
    torch.manual_seed(1)
    model, x, y = make()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)

    def step():
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()

    return model, optimizer, step


def times_of(step, steps):
    """(wall, CPU) seconds."""
    wall, cpu = time.perf_counter(), time.process_time()
    for _ in range(steps):
        step()
    return time.perf_counter() - wall, time.process_time() - cpu


def recorder(**settings):
    return lambda model, optimizer, folder: Recorder(model, optimizer, folder / "run", **settings)


def peer(look):
    return lambda model, optimizer, folder: recording_peers.looking_at(model, optimizer, look)


def tensorboard(model, optimizer, folder):
    look = recording_peers.add_histogram(folder)
    return look and recording_peers.looking_at(model, optimizer, look)


# What is done at a step, and how many steps a turn has.
WAYS = {
    "not recorded": (recorder(every=[-1]), 1),
    "recorded": (recorder(every=1), 1),
    "every tenth recorded": (recorder(every=10), 10),
    "recorded and sampled": (recorder(every=1, sample_every=1), 1),
    "torch.histc, 64 bins": (peer(recording_peers.histc), 1),
    "TensorBoard's add_histogram": (tensorboard, 1),
    "statistics as Transformer Engine's": (peer(recording_peers.statistics), 1),
}


def interval(values):
    """The 95 % interval of the median: the k-th value from either end, by the binomial
    distribution."""
    ordered, n = sorted(values), len(values)
    below, k = 0.0, 0
    while below + math.comb(n, k) / 2**n <= 0.025:
        below += math.comb(n, k) / 2**n
        k += 1
    return ordered[max(k - 1, 0)], ordered[n - max(k, 1)]


def forget_samples(folder):
    """More than the disk takes in would wait in memory, and Linux then lets the writer do its work:
    of 60 files of 45 MiB in a row the first took 14 ms of CPU time each, the last 120."""
    for sample in pathlib.Path(folder).glob("run/tensors/*"):
        sample.unlink()


def measure(make, way, pairs, steps):
    """Of each pair: how much longer a turn took, (wall, CPU) in percent, and wall milliseconds a
    step. None where the way cannot be used."""
    model, optimizer, watched = trainer(make)
    _, _, plain = trainer(make)
    found = []
    with tempfile.TemporaryDirectory() as folder:
        context = way(model, optimizer, pathlib.Path(folder))
        if context is None:
            return None
        with context:
            times_of(plain, 2), times_of(watched, steps)  # memory is allocated, kernels are chosen
            for pair in range(pairs):
                order = [plain, watched] if pair % 2 == 0 else [watched, plain]
                times = {step: times_of(step, steps) for step in order}
                forget_samples(folder)
                (wall, cpu), (wall_more, cpu_more) = times[plain], times[watched]
                found.append((100 * (wall_more / wall - 1), 100 * (cpu_more / cpu - 1),
                              1000 * (wall_more - wall) / steps))
    return list(zip(*found))


def result_of(make, name, pairs):
    way, steps = WAYS[name]
    turns = max(pairs // steps, 20)
    found = measure(make, way, turns, steps)
    if found is None:
        print(f"{make.__name__}, {name}: cannot be used here")
        return None
    wall, cpu, milliseconds = found
    result = {"name": f"recorder, {make.__name__}, {name}", "threads": torch.get_num_threads(),
              "value": statistics.median(cpu), "unit": "% more CPU time", "pairs": turns,
              "interval": interval(cpu), "wall": statistics.median(wall),
              "wall_interval": interval(wall), "milliseconds": statistics.median(milliseconds),
              "torch": torch.__version__}
    (low, high), (wall_low, wall_high) = result["interval"], result["wall_interval"]
    print(f"{make.__name__ + ', ' + name:<50} CPU {result['value']:6.1f} % ({low:.1f} to {high:.1f})"
          f"   wall {result['wall']:6.1f} % ({wall_low:.1f} to {wall_high:.1f})"
          f"   {result['milliseconds']:.2f} ms a step", flush=True)
    return result


def processor():
    """Its name, where Linux tells it."""
    with contextlib.suppress(OSError, StopIteration):
        lines = pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    return platform.machine()


def main():
    names = [make.__name__ for make in NETWORKS]
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json")
    parser.add_argument("--pairs", type=int, default=200)
    parser.add_argument("--networks", nargs="+", choices=names, default=names)
    parser.add_argument("--threads", type=int, help="of PyTorch; default: its own choice")
    options = parser.parse_args()
    keep_memory()
    if options.threads:
        torch.set_num_threads(options.threads)
    print(f"PyTorch {torch.__version__}, {processor()}, {torch.get_num_threads()} threads")
    chosen = [make for make in NETWORKS if make.__name__ in options.networks]
    results = [result_of(make, name, options.pairs) for make in chosen for name in WAYS]
    if options.json:
        text = json.dumps([result for result in results if result], indent=1)
        pathlib.Path(options.json).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
