# SPDX-License-Identifier: Apache-2.0
"""Speed of NumPy and PyTorch on the data of bench_array, as ratios to reading memory.

    bench_array.py [--json FILE] [--elements N]
"""

import argparse
import json
import time

import numpy as np
import torch


def mixed_values(n, seed):
    """Values whose log2 magnitude is normal (mean -10, deviation 10), clipped to [-40, 20]."""
    random = np.random.default_rng(seed)
    log2 = random.normal(-10, 10, 1 << 21)
    log2 = log2[(log2 >= -40) & (log2 <= 20)][: 1 << 20]
    some = np.exp2(log2) * random.choice([-1.0, 1.0], len(log2))
    return np.resize(some.astype(np.float32), n)


def ways(n):
    """(name, bytes read, function) of each implementation, all on one thread."""
    values = mixed_values(n, 1)
    with np.errstate(over="ignore", under="ignore"):
        a, b, c = (mixed_values(n, seed).astype(np.float16) for seed in (2, 3, 4))
    out = np.empty_like(a)
    tensor, half_out = torch.from_numpy(values), torch.from_numpy(out)
    ta, tb, tc = (torch.from_numpy(x) for x in (a, b, c))
    back = torch.empty_like(tensor)

    def quantise():
        half_out.copy_(tensor)
        back.copy_(half_out)

    yield "read (sum of 64-bit words), NumPy", values.nbytes, lambda: values.view(np.uint64).sum()
    yield "convert: PyTorch copy_", values.nbytes, lambda: half_out.copy_(tensor)
    yield "quantise: PyTorch copy_ there and back", values.nbytes, quantise
    yield "add: PyTorch", 2 * a.nbytes, lambda: torch.add(ta, tb, out=half_out)
    yield "multiply: PyTorch", 2 * a.nbytes, lambda: torch.mul(ta, tb, out=half_out)
    # PyTorch 1.13 has no addcmul of halves on the CPU: use two operations, each rounded.
    yield (
        "multiply, then add: PyTorch",
        3 * a.nbytes,
        lambda: torch.add(torch.mul(ta, tb, out=half_out), tc, out=half_out),
    )
    yield "convert: NumPy astype", values.nbytes, lambda: values.astype(np.float16)
    yield "add: NumPy", 2 * a.nbytes, lambda: np.add(a, b, out=out)
    yield "multiply: NumPy", 2 * a.nbytes, lambda: np.multiply(a, b, out=out)


def best_time(work, runs):
    """The best CPU time of this thread, independent of other load on the machine."""
    times = []
    for _ in range(runs):
        start = time.thread_time()
        work()
        times.append(time.thread_time() - start)
    return min(times)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--json")
    parser.add_argument("--elements", type=int, default=1 << 26)
    options = parser.parse_args()
    torch.set_num_threads(1)
    results = []
    read = None
    with np.errstate(all="ignore"):
        for name, size, work in ways(options.elements):
            runs = 1 if "NumPy" in name and results else 5
            speed = size / best_time(work, runs) / 1e9
            read = read or speed
            results.append(
                {"name": name, "threads": 1, "value": speed, "unit": "GB/s", "ratio_to_read": speed / read}
            )
    for result in results:
        print(f"{result['name']:<45} {result['value']:8.2f} GB/s {result['ratio_to_read']:8.3f} of reading")
    if options.json:
        with open(options.json, "w") as file:
            json.dump(results, file, indent=1)


if __name__ == "__main__":
    main()
