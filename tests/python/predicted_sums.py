# SPDX-License-Identifier: Apache-2.0
"""Tensors whose sums over many ranks are known, against the intervals that `halfscope reduce` predicts.

The judge adds addend by addend in NumPy; it shares no code with the program. As a program it draws
new tensors of three size classes and prints how many intervals hold the truth (a third of a second
of processor time a tensor):

    PYTHONPATH=build/python .venv/bin/python tests/python/predicted_sums.py --tensors 1000
"""
import argparse
import collections
import statistics
import tempfile

import numpy as np
from safetensors.numpy import save_file

CLASSES = {"10 to 100": (10, 100), "101 to 1,000": (101, 1000), "1,001 to 30,000": (1001, 30000)}
FORMATS, ORDERS = ("bfloat16", "binary16"), ("sequential", "tree", "pairwise")
RECORDED, WANTED = (4, 8, 16), (32, 64, 128, 256, 384)


def bfloat16(x):
    """Binary32 values rounded to bfloat16, ties to even."""
    bits = np.asarray(x, np.float32).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) & np.uint32(0xFFFF0000)).view(np.float32)


def binary16(x):
    return np.asarray(x, np.float32).astype(np.float16).astype(np.float32)


ROUND = {"bfloat16": bfloat16, "binary16": binary16}


def normal_of(size):
    """Normal means of that size in units of the noise."""
    def make(rng, n):
        mean = size * rng.standard_normal(n)
        return lambda count: mean + rng.standard_normal((count, n))
    return make


def one_mean(rng, n):
    return lambda count: 1 + rng.standard_normal((count, n))


def laplace(rng, n):
    mean = rng.laplace(0, 0.5, n)
    return lambda count: mean + rng.laplace(0, 1, (count, n))


def log_normal_scales(rng, n):
    scale, mean = np.exp(rng.standard_normal(n)), 0.5 * rng.standard_normal(n)
    return lambda count: scale * (mean + rng.standard_normal((count, n)))


def laplace_of_scales(rng, n):
    scale, mean = np.exp(0.5 * rng.standard_normal(n)), rng.laplace(0, 0.3, n)
    return lambda count: scale * (mean + rng.laplace(0, 1, (count, n)))


def skewed(rng, n):
    mean = rng.standard_normal(n)
    return lambda count: mean * rng.exponential(1, (count, n))


def skewed_and_noise(rng, n):
    mean = 0.3 * rng.standard_normal(n)
    return lambda count: mean * rng.exponential(1, (count, n)) + rng.laplace(0, 0.3, (count, n))


def of_few_ranks(rng, n):
    """On three of ten ranks, and else zero."""
    mean = 0.5 * rng.standard_normal(n)
    return lambda count: (mean + rng.standard_normal((count, n))) * (rng.random((count, n)) < 0.3)


def long_tailed(rng, n):
    mean = 0.5 * rng.standard_normal(n)
    return lambda count: mean + rng.standard_t(4, (count, n))


KINDS = {
    "means 1, noise 1": normal_of(1), "means 0.3": normal_of(0.3), "means 0.1": normal_of(0.1),
    "means 3": normal_of(3), "noise alone": normal_of(0), "one mean": one_mean, "Laplace": laplace,
    "log-normal scales": log_normal_scales, "Laplace, scales": laplace_of_scales, "skewed": skewed,
    "skewed and noise": skewed_and_noise, "of few ranks": of_few_ranks, "long-tailed": long_tailed,
}


class Sum:
    """Sums of columns, a row at a time: what is lost, and how far they are from the exact sums."""

    def __init__(self, rounded):
        self.rounded, self.lost, self.additions = rounded, 0, 0

    def add(self, left, right):
        out = self.rounded(left + right)
        self.lost += int(((left != 0) & (right != 0) & ((out == left) | (out == right))).sum())
        self.additions += out.size
        return out

    def of(self, rows, order):
        if order == "sequential":
            total = rows[0]
            for row in rows[1:]:
                total = self.add(total, row)
            return total
        if order == "pairwise":
            if len(rows) == 1:
                return rows[0]
            half = len(rows) // 2
            return self.add(self.of(rows[:half], order), self.of(rows[half:], order))
        power = 1 << (len(rows).bit_length() - 1)  # recursive halving
        extra = len(rows) - power
        rows = [self.add(rows[2 * i], rows[2 * i + 1]) for i in range(extra)] + list(rows[2 * extra:])
        while len(rows) > 1:
            half = len(rows) // 2
            rows = [self.add(rows[i], rows[i + half]) for i in range(half)]
        return rows[0]


def truth(rows, format, order):
    """The lost share and the relative L2 error of the rows' sum."""
    rows = ROUND[format](rows)
    adder = Sum(ROUND[format])
    result, exact = adder.of(rows, order).astype(np.float64), rows.astype(np.float64).sum(0)
    size = np.linalg.norm(exact)
    return {"lost_share": adder.lost / adder.additions,
            "relative_l2": np.linalg.norm(result - exact) / size if size else 0.0}


def tensors(sizes, count, seed):
    """`count` of a class: how it is summed, the recorded rows, and the truth of as many new rows."""
    for k in range(count):
        rng = np.random.default_rng([seed, sizes[0], k])
        kind = list(KINDS)[k % len(KINDS)]
        n = int(np.exp(rng.uniform(np.log(sizes[0]), np.log(sizes[1] + 1))))
        draw = KINDS[kind](rng, n)
        how = (str(rng.choice(FORMATS)), str(rng.choice(ORDERS)), int(rng.choice(WANTED)))
        recorded, format = int(rng.choice(RECORDED)), how[0]
        stored = ROUND[format] if rng.random() < 0.5 else np.float32
        rows = stored(draw(recorded).astype(np.float32))
        yield {"kind": kind, "how": how, "rows": rows, "n": n, "recorded": recorded,
               "truth": truth(stored(draw(how[2]).astype(np.float32)), format, how[1])}


def predicted(made, folder):
    """Adds to each tensor the intervals of `halfscope.reduce`: many tensors to a call."""
    import halfscope

    calls = collections.defaultdict(list)
    for k, one in enumerate(made):
        path = f"{folder}/{k}.safetensors"
        rows = one.pop("rows")
        save_file({"local_weight_grad/w": rows, "weight_grad/w": rows[0]}, path)
        calls[one["how"]].append((path, one))
    for (format, order, count), asked in calls.items():
        found = halfscope.reduce([path for path, _ in asked], over="microbatches", format=format,
                                 order=order, counts=[count], recorded_scale=1)
        by_log = {entry.log: entry for entry in found if entry.predicted}
        for path, one in asked:
            (log,) = [log for log in by_log if path.endswith(log) or log.endswith(path)]
            one["intervals"] = {name: list(by_log[log][name]) for name in one["truth"]}
    return made


def judged(sizes, count, seed):
    with tempfile.TemporaryDirectory() as folder:
        return predicted(list(tensors(sizes, count, seed)), folder)


def holds(one, name):
    low, high = one["intervals"][name]
    return low <= one["truth"][name] <= high


def held(made):
    """Of the intervals of these tensors, the share that hold the truth."""
    return statistics.fmean(holds(one, name) for one in made for name in one["truth"])


def width(made, name):
    """The median width of the intervals over the truth."""
    return statistics.median((one["intervals"][name][1] - one["intervals"][name][0]) / one["truth"][name]
                             for one in made if one["truth"][name])


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--tensors", type=int, default=1000, help="of each size class (default 1000)")
    options.add_argument("--seed", type=int, default=1)
    asked = options.parse_args()
    for name, sizes in CLASSES.items():
        made = judged(sizes, asked.tensors, asked.seed)
        print(f"{name} elements: {held(made):.1%} of {2 * len(made)} intervals hold the truth; median width over "
              f"the truth: lost {width(made, 'lost_share'):.2f}, error {width(made, 'relative_l2'):.2f}", flush=True)


if __name__ == "__main__":
    main()
