# SPDX-License-Identifier: Apache-2.0
"""Speed of NumPy and PyTorch in counting lost updates of bench_update, as ratios to reading.

    bench_update.py [--json FILE] [--elements N]
"""

import argparse
import json
import time

import numpy as np


def pairs(n):
    """Normal weights, and log-normal updates of both signs with 1 % zeros, as in bench_update."""
    random = np.random.default_rng(1)
    weights = random.normal(0, 0.05, 1 << 20).astype(np.float32)
    updates = np.exp2(random.normal(-15, 3, 1 << 20)) * random.choice([-1.0, 1.0], 1 << 20)
    updates[random.random(1 << 20) < 0.01] = 0
    return np.resize(weights, n), np.resize(updates.astype(np.float32), n)


def read(w, u):
    return w.view(np.uint64).sum(), u.view(np.uint64).sum()


def lost_in_numpy(w, u):
    with np.errstate(under="ignore", over="ignore"):
        w16 = w.astype(np.float16)
        return int(np.sum((w16 + u.astype(np.float16) == w16) & (u != 0)))


def lost_in_torch(torch):
    def lost(w, u):
        w16, exact = torch.from_numpy(w).half(), torch.from_numpy(u)
        return int(((w16 + exact.half() == w16) & (exact != 0)).sum())

    return lost


def ways():
    yield "read (sum of 64-bit words), NumPy", read
    yield "NumPy swamped check in float16", lost_in_numpy
    try:
        import torch
    except ImportError:
        return
    torch.set_num_threads(1)
    yield "PyTorch swamped check in half", lost_in_torch(torch)


def best_time(work, w, u):
    times = []
    for _ in range(3):
        start = time.perf_counter()
        work(w, u)
        times.append(time.perf_counter() - start)
    return min(times)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--json")
    parser.add_argument("--elements", type=int, default=1 << 23)
    options = parser.parse_args()
    w, u = pairs(options.elements)
    times = {name: best_time(work, w, u) for name, work in ways()}
    reading = next(iter(times.values()))
    results = [
        {
            "name": name,
            "threads": 1,
            "value": (w.nbytes + u.nbytes) / seconds / 1e9,
            "unit": "GB/s",
            "ratio_to_read": reading / seconds,
        }
        for name, seconds in times.items()
    ]
    for result in results:
        print(f"{result['name']:<55} {result['value']:8.2f} GB/s {result['ratio_to_read']:8.3f} of reading")
    if options.json:
        with open(options.json, "w") as file:
            json.dump(results, file, indent=1)


if __name__ == "__main__":
    main()
