# SPDX-License-Identifier: Apache-2.0
"""What users do today, on the data of bench_table: ratios to reading the same memory.

    bench_numpy.py [--json FILE] [--elements N]
"""

import argparse
import json
import time

import numpy as np


def gradients(n, deviation=3.0):
    """Log-normal magnitudes of either sign, 1 % zeros; as bench_table makes them."""
    random = np.random.default_rng(1)
    some = np.exp2(random.normal(-18, deviation, 1 << 20)) * random.choice([-1.0, 1.0], 1 << 20)
    some[random.random(1 << 20) < 0.01] = 0
    return np.resize(some.astype(np.float32), n)


def exponent_bincount(x):
    return np.bincount((x.view(np.uint32) >> 23) & 0xFF, minlength=256)


def flushed_by_conversion(x):
    with np.errstate(under="ignore"):
        return int(np.sum((x.astype(np.float16) == 0) & (x != 0)))


WAYS = {
    "read (sum of 64-bit words), NumPy": lambda x: x.view(np.uint64).sum(),
    "NumPy exponent bits and bincount (no side counts)": exponent_bincount,
    "NumPy astype(float16) == 0 (one scale)": flushed_by_conversion,
}


def best_time(work, x):
    times = []
    for _ in range(3):
        start = time.perf_counter()
        work(x)
        times.append(time.perf_counter() - start)
    return min(times)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--json")
    parser.add_argument("--elements", type=int, default=1 << 24)
    options = parser.parse_args()
    x = gradients(options.elements)
    times = {name: best_time(work, x) for name, work in WAYS.items()}
    read = next(iter(times.values()))
    results = [
        {"name": name, "threads": 1, "value": x.nbytes / seconds / 1e9, "unit": "GB/s", "ratio_to_read": read / seconds}
        for name, seconds in times.items()
    ]
    for result in results:
        print(f"{result['name']:<55} {result['value']:8.2f} GB/s {result['ratio_to_read']:8.3f} of reading")
    if options.json:
        with open(options.json, "w") as file:
            json.dump(results, file, indent=1)


if __name__ == "__main__":
    main()
