# SPDX-License-Identifier: Apache-2.0
"""Speed of counting in NumPy and PyTorch, on the data of bench_table, as ratios to reading memory.

    bench_numpy.py [--json FILE] [--elements N]
"""

import argparse
import json
import time

import numpy as np
import torch


def gradients(n, deviation):
    """Log-normal magnitudes of both signs with 1 % zeros, as in bench_table."""
    random = np.random.default_rng(1)
    some = np.exp2(random.normal(-18, deviation, 1 << 20)) * random.choice([-1.0, 1.0], 1 << 20)
    some[random.random(1 << 20) < 0.01] = 0
    return np.resize(some.astype(np.float32), n)


def ways(x):
    """(name, bytes read, function) of each implementation, on one thread; none has a table's extra
    counts."""
    with np.errstate(under="ignore"):
        half = x.astype(np.float16)
    tensor = torch.from_numpy(x)
    bits = torch.from_numpy(x.view(np.int32))
    half_bits = torch.from_numpy(half.view(np.int16))
    brain_bits = tensor.to(torch.bfloat16).view(torch.int16)

    def flushed_by_numpy():
        with np.errstate(under="ignore"):
            return int(np.sum((x.astype(np.float16) == 0) & (x != 0)))

    def flushed_by_torch():
        return int(((tensor.half() == 0) & (tensor != 0)).sum())

    def exponents_by_torch(words, shift, mask):
        return torch.bincount(((words >> shift) & mask).flatten(), minlength=mask + 1)

    yield "read (sum of 64-bit words), NumPy", x.nbytes, lambda: x.view(np.uint64).sum()
    yield "F32: NumPy, exponent bits and bincount", x.nbytes, lambda: np.bincount(
        (x.view(np.uint32) >> 23) & 0xFF, minlength=256
    )
    yield "F32: NumPy, astype(float16) == 0, one scale", x.nbytes, flushed_by_numpy
    yield "F32: PyTorch, exponent bits and bincount", x.nbytes, lambda: exponents_by_torch(bits, 23, 0xFF)
    yield "F32: PyTorch, histc of the values, 256 bins", x.nbytes, lambda: torch.histc(tensor, bins=256)
    yield "F32: PyTorch, half() == 0, one scale", x.nbytes, flushed_by_torch
    yield "F16: NumPy, exponent bits and bincount", half.nbytes, lambda: np.bincount(
        (half.view(np.uint16) >> 10) & 0x1F, minlength=32
    )
    yield "F16: PyTorch, exponent bits and bincount", half.nbytes, lambda: exponents_by_torch(half_bits, 10, 0x1F)
    yield "BF16: PyTorch, exponent bits and bincount", 2 * x.size, lambda: exponents_by_torch(brain_bits, 7, 0xFF)


def best_time(work):
    """The best CPU time of this thread, independent of other load on the machine."""
    times = []
    for _ in range(3):
        start = time.thread_time()
        work()
        times.append(time.thread_time() - start)
    return min(times)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--json")
    parser.add_argument("--elements", type=int, default=1 << 24)
    options = parser.parse_args()
    torch.set_num_threads(1)
    results = []
    for deviation in (3, 6):
        read = None
        for name, size, work in ways(gradients(options.elements, deviation)):
            speed = size / best_time(work) / 1e9
            read = read or speed
            results.append(
                {
                    "name": f"{name}, log2 deviation {deviation}",
                    "threads": 1,
                    "value": speed,
                    "unit": "GB/s",
                    "ratio_to_read": speed / read,
                }
            )
    for result in results:
        print(f"{result['name']:<66} {result['value']:8.2f} GB/s {result['ratio_to_read']:8.3f} of reading")
    if options.json:
        with open(options.json, "w") as file:
            json.dump(results, file, indent=1)


if __name__ == "__main__":
    main()
