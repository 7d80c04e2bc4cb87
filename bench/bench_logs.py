# SPDX-License-Identifier: Apache-2.0
"""Time and largest memory (including mapped files) of the program on large logs.

    bench_logs.py [--json FILE] [--tensors N] [--lines N] [--statistics N]
"""

import argparse
import json
import os
import struct
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np
from te_statistics_log import write_te_statistics

PROGRAM = Path(__file__).parent.parent / "build" / "halfscope"


def write_tensors(path, tensors, values=16):
    """Writes a safetensors file of many small tensors, from tensors without losses to flushed
    ones."""
    random = np.random.default_rng(3)
    means = -8 - 20 * np.arange(tensors)[:, None] / tensors
    data = np.exp2(means + random.normal(0, 2, (tensors, values))).astype(np.float32)
    size = data[0].nbytes
    header = {
        f"weight_grad/layer{i:07d}.weight": {
            "dtype": "F32",
            "shape": [values],
            "data_offsets": [i * size, (i + 1) * size],
        }
        for i in range(tensors)
    }
    text = json.dumps(header, separators=(",", ":")).encode()  # the reader's limit is 100 MB
    path.write_bytes(struct.pack("<Q", len(text)) + text + data.tobytes())


def write_lines(path, lines):
    """Writes a log as Megatron-LM prints it, one line per iteration."""
    scale = 65536.0
    with open(path, "w") as out:
        for i in range(1, lines + 1):
            skipped = i % 1007 == 0
            scale = scale / 2 if skipped else scale * 2 if i % 1007 == 1000 else scale
            out.write(
                f" [2024-05-01 12:{i // 60 % 60:02d}:{i % 60:02d}] iteration {i:8d}/ {lines} | consumed samples: "
                f"{i * 512:12d} | elapsed time per iteration (ms): {1234.5 + i % 100:.1f} | learning rate: 1.5E-04 | "
                f"global batch size:   512 | lm loss: {2.5 + 1000 / (i + 100):.6E} | loss scale: {scale:.1f} | grad "
                f"norm: {0.5 + i % 37 / 100:.3f} | number of skipped iterations: {int(skipped):3d} | number of nan "
                "iterations:   0 |\n"
            )


def measured(arguments):
    """(seconds, MiB) of the program: the better of two runs, with the file in the page cache."""
    best = (float("inf"), float("inf"))
    for _ in range(2):
        start = time.perf_counter()
        child = subprocess.Popen([PROGRAM, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode != 0:
            raise SystemExit(f"bench_logs: {' '.join(map(str, arguments))} ended with {child.returncode}")
        best = min(best, (time.perf_counter() - start, usage.ru_maxrss / 1024))
    return best


def reading(path):
    start = time.perf_counter()
    with open(path, "rb", buffering=0) as file:
        while file.read(1 << 22):
            pass
    return time.perf_counter() - start


def results(folder, tensors, lines, statistics):
    many, text, out = folder / "many.safetensors", folder / "run.log", folder / "out"
    fp8 = folder / "te.log"
    write_tensors(many, tensors)
    write_lines(text, lines)
    write_te_statistics(fp8, statistics)
    commands = [
        (f"analyze, {tensors} tensors", ["analyze", many]),
        (f"analyze --json, {tensors} tensors", ["analyze", many, "--json", out]),
        (f"recommend, {tensors} tensors", ["recommend", many]),
        (f"report, {tensors} tensors", ["report", many, "--out", folder / "out.html"]),
        (f"report, {statistics} lines of FP8 statistics", ["report", fp8, "--out", folder / "fp8.html"]),
        (f"recommend, {lines} lines of a console log", ["recommend", text]),
    ]
    found = []
    for name, arguments in commands:
        seconds, memory = measured(arguments)
        found += [(name, seconds, "s"), (name, memory, "MiB")]
    speed = text.stat().st_size / found[-2][1]
    found.append(("lines of a console log", speed / 1e6, "MB/s"))
    found.append(("reading the same file", text.stat().st_size / reading(text) / 1e6, "MB/s"))
    threads = len(os.sched_getaffinity(0))
    return [{"name": n, "threads": threads, "value": v, "unit": u} for n, v, u in found]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json")
    parser.add_argument("--tensors", type=int, default=100_000)
    parser.add_argument("--lines", type=int, default=400_000)
    parser.add_argument("--statistics", type=int, default=6_013_920)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = results(Path(folder), given.tensors, given.lines, given.statistics)
    for row in found:
        print(f"{row['name']:<58} {row['threads']:>7} {row['value']:>10.1f} {row['unit']}")
    if given.json:
        Path(given.json).write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
