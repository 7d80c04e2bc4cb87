# SPDX-License-Identifier: Apache-2.0
"""Speed of other quantisers of block formats on the data of bench_block, as ratios to reading.

    bench_block.py [--json FILE] [--elements N]

torchao's are measured where it is installed.
"""

import argparse
import json

import ml_dtypes
import numpy as np
from bench_array import best_time

COLUMNS = 4096


def gradients(n):
    """Normal numbers in rows of magnitudes from 2^-20 to 2^3."""
    rows = max(n // COLUMNS, 128)
    some = np.random.default_rng(1).standard_normal((rows, COLUMNS), dtype=np.float32)
    return some * np.exp2(np.arange(rows, dtype=np.float32) % 24 - 20)[:, None]


def mxfp8_floor(values):
    """The few lines that people write: NumPy, with ml_dtypes for the elements."""
    blocks = values.reshape(-1, 32)
    largest = np.abs(blocks).max(axis=1)
    scales = np.maximum((largest.view(np.int32) >> 23) - 8, 0)
    factors = np.exp2((127 - scales).astype(np.float32))
    scaled = np.clip(blocks * factors[:, None], -448, 448)
    return scaled.astype(ml_dtypes.float8_e4m3fn), scales.astype(np.uint8)


def ways(values):
    """(name, function) of each implementation, all on one thread."""
    yield "read (sum of 64-bit words), NumPy", lambda: values.view(np.uint64).sum()
    yield "float8_e4m3fn alone, without scales: ml_dtypes", lambda: values.astype(
        ml_dtypes.float8_e4m3fn
    )
    yield "mxfp8-e4m3-floor: NumPy and ml_dtypes", lambda: mxfp8_floor(values)
    try:
        import torch
        from torchao.prototype.mx_formats.config import ScaleCalculationMode
        from torchao.prototype.mx_formats.mx_tensor import to_mx
        from torchao.prototype.mx_formats.nvfp4_tensor import nvfp4_quantize
    except ImportError:
        return
    torch.set_num_threads(1)
    tensor = torch.from_numpy(values)
    for mode in ("FLOOR", "RCEIL"):
        rule = getattr(ScaleCalculationMode, mode)
        yield f"mxfp8-e4m3-{mode.lower()}: torchao", lambda rule=rule: to_mx(
            tensor, torch.float8_e4m3fn, 32, rule
        )
    largest = tensor.abs().max()
    yield "nvfp4, tensor's scale given: torchao", lambda: nvfp4_quantize(
        tensor, 16, largest / (448 * 6)
    )


def main():
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--json")
    arguments.add_argument("--elements", type=int, default=1 << 25)
    given = arguments.parse_args()
    values = gradients(given.elements)
    results, read = [], None
    print(f"{'':<58} {'':>15} {'ratio to read':>14}")
    for name, work in ways(values):
        speed = values.nbytes / best_time(work, 3) / 1e9
        read = read or speed
        results.append(
            {"name": name, "threads": 1, "value": speed, "unit": "GB/s", "ratio_to_read": speed / read}
        )
        print(f"{name:<58} {speed:>10.2f} GB/s {speed / read:>13.3f}")
    if given.json:
        with open(given.json, "w") as file:
            json.dump(results, file, indent=1)


if __name__ == "__main__":
    main()
