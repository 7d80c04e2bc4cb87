# SPDX-License-Identifier: Apache-2.0
"""Overhead of halfscope.torch.Recorder in a training step: wall time, and CPU time of all threads.

    bench_recording.py [--json FILE] [--pairs N] [--networks NAME ...] [--ways NAME ...]
                       [--threads N] [--device cpu|cuda] [--amp]

Two copies of a network train in turns; one of them is recorded. Each pair of turns gives a
ratio of times, so that other load on the machine affects both. Prints the medians over pairs
with 95 % intervals (order statistics, by the binomial distribution).

With --device cuda, training runs on an NVIDIA GPU. A turn ends when the GPU has finished all
its work. Wall time is the measure: the CPU is busy while it waits. --amp uses FP16 autocast and
a GradScaler.
"""

import argparse
import ctypes
import dataclasses
import json
import math
import pathlib
import statistics
import tempfile
import typing

import recording_peers
import torch
from recording_networks import LARGE, NETWORKS
from recording_training import Device

from halfscope.torch import Recorder, record


def keep_memory():
    """Makes glibc keep the memory that large activations free. Otherwise the page faults of
    allocating it again would affect one of the copies at random."""
    trim_threshold, mmap_threshold, most = -1, -3, 32 << 20  # glibc's largest mmap threshold
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt:
        mallopt(trim_threshold, 2**31 - 1)
        mallopt(mmap_threshold, most)


def recorder(**settings):
    return lambda training, folder: Recorder(training.model, training.optimizer, folder / "run",
                                             scaler=training.scaler, **settings)


def peer(look):
    return lambda training, folder: recording_peers.looking_at(training.model, training.optimizer,
                                                               look)


def tensorboard(training, folder):
    look = recording_peers.add_histogram(folder)
    return look and recording_peers.looking_at(training.model, training.optimizer, look)


@dataclasses.dataclass(frozen=True)
class Way:
    """One recording method. context(training, folder) returns a context manager, or None if the
    method is not available."""

    context: typing.Callable
    steps: int = 1      # steps of a turn
    gpu_steps: int = 1  # steps of a turn on a GPU


WAYS = {
    # Ten steps on a GPU, because the CPU queues work ahead of the GPU until something waits for it.
    # Waiting at the end of each step would hide this.
    "not recorded": Way(recorder(every=[-1]), 1, 10),
    "not recorded, found by record": Way(
        lambda training, folder: record(folder / "run", every=[-1], only_one=True), 1, 10),
    "not recorded, magnitudes_every=None": Way(recorder(every=[-1], magnitudes_every=None), 1, 10),
    "recorded": Way(recorder(every=1)),
    "every tenth recorded": Way(recorder(every=10), 10, 10),
    "recorded and sampled": Way(recorder(every=1, sample_every=1)),
    "torch.histc, 64 bins": Way(peer(recording_peers.histc)),
    "TensorBoard's add_histogram": Way(tensorboard),
    "statistics as Transformer Engine's": Way(peer(recording_peers.statistics)),
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
    """Deletes the samples. If more data wait in memory than the disk can write, Linux makes the
    writer wait: of 60 files of 45 MiB, the first took 14 ms of CPU time each, the last 120."""
    for sample in pathlib.Path(folder).glob("run/tensors/*"):
        sample.unlink()


def warm_up(device, plain, watched, steps, folder):
    """Runs some turns, in which memory is allocated, kernels are chosen, and a GradScaler finds
    its scale."""
    for _ in range(3 if device.is_gpu else 1):
        device.times_of(watched.step, steps)  # first, so that it is the one that record() finds
        device.times_of(plain.step, 2)
    forget_samples(folder)


def measure(device, make, way, pairs, steps):
    """For each pair of turns: increase in wall and CPU time in percent, increase in wall
    milliseconds per step, and wall milliseconds of a plain step. None if the method is not
    available."""
    watched, plain = device.training(make), device.training(make)
    found = []
    with tempfile.TemporaryDirectory() as folder:
        context = way.context(watched, pathlib.Path(folder))
        if context is None:
            return None
        with context:
            warm_up(device, plain, watched, steps, folder)
            for pair in range(pairs):
                order = [plain, watched] if pair % 2 == 0 else [watched, plain]
                times = {id(one): device.times_of(one.step, steps) for one in order}
                forget_samples(folder)
                (wall, cpu), (wall_more, cpu_more) = times[id(plain)], times[id(watched)]
                found.append((100 * (wall_more / wall - 1), 100 * (cpu_more / cpu - 1),
                              1000 * (wall_more - wall) / steps, 1000 * wall / steps))
    return list(zip(*found))


def turns_of(pairs, steps):
    """The number of pairs: fewer if a turn has several steps, but at least 20 if possible."""
    return max(pairs // steps, min(pairs, 20))


def result_of(device, make, name, pairs):
    way = WAYS[name]
    steps = way.gpu_steps if device.is_gpu else way.steps
    turns = turns_of(pairs, steps)
    found = measure(device, make, way, turns, steps)
    device.free_memory()
    if found is None:
        print(f"{make.__name__}, {name}: cannot be used here")
        return None
    wall, cpu, milliseconds, plain = found
    (measure_name, value), (other_name, other) = (
        (("wall", wall), ("cpu", cpu)) if device.is_gpu else (("CPU", cpu), ("wall", wall)))
    result = {"name": f"recorder, {make.__name__}, {name}", "threads": torch.get_num_threads(),
              "value": statistics.median(value), "unit": f"% more {measure_name} time",
              "pairs": turns, "interval": interval(value), other_name: statistics.median(other),
              f"{other_name}_interval": interval(other),
              "milliseconds": statistics.median(milliseconds), "torch": torch.__version__}
    if device.is_gpu or device.amp:
        result |= {"plain_milliseconds": statistics.median(plain), "device": device.name(),
                   "amp": device.amp}
    print_row(f"{make.__name__}, {name}", cpu, wall, milliseconds, plain if device.is_gpu else None)
    return result


def print_row(title, cpu, wall, milliseconds, plain):
    (low, high), (wall_low, wall_high) = interval(cpu), interval(wall)
    of = f" on {statistics.median(plain):.2f}" if plain else ""
    print(f"{title:<50} CPU {statistics.median(cpu):6.1f} % ({low:.1f} to {high:.1f})"
          f"   wall {statistics.median(wall):6.1f} % ({wall_low:.1f} to {wall_high:.1f})"
          f"   {statistics.median(milliseconds):.2f}{of} ms a step", flush=True)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json")
    parser.add_argument("--pairs", type=int, default=200)
    names, large = [make.__name__ for make in NETWORKS + LARGE], [make.__name__ for make in LARGE]
    parser.add_argument("--networks", nargs="+", choices=names,
                        help="default: all; on a CPU all but " + ", ".join(large))
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS), metavar="NAME",
                        help="rows of a network: " + "; ".join(WAYS) + ". Default: all")
    parser.add_argument("--threads", type=int, help="of PyTorch; default: its own choice")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--amp", action="store_true", help="FP16 autocast and a GradScaler")
    options = parser.parse_args()
    device = Device(options.device, options.amp)
    if device.missing():
        parser.error(device.missing())
    return options, device


def main():
    options, device = arguments()
    keep_memory()
    if options.threads:
        torch.set_num_threads(options.threads)
    print(f"PyTorch {torch.__version__}, {device.name()}, {torch.get_num_threads()} threads"
          + (", FP16 autocast" if device.amp else ""))
    chosen = NETWORKS + LARGE if device.is_gpu else NETWORKS
    if options.networks:
        chosen = [make for make in NETWORKS + LARGE if make.__name__ in options.networks]
    results = [result_of(device, make, name, options.pairs) for make in chosen
               for name in WAYS if name in options.ways]
    if options.json:
        text = json.dumps([result for result in results if result], indent=1)
        pathlib.Path(options.json).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
