# SPDX-License-Identifier: Apache-2.0
"""Time and workers' memory to count the log of many ranks, by its size and the number of workers.

    bench_distributed.py [--json FILE] [--plot FILE.svg] [--ranks N] [--steps N] [--gigabytes N]

Creates a run log of N ranks in a temporary folder: copies of one simulated rank. Counts parts
of it with `halfscope.distributed` and 1 to 4 workers. Then counts an fsspec file system that
generates the bytes of gradients when they are read (no disk, no network), and a folder with the
same files.
"""

import argparse
import json
import os
import pathlib
import platform
import shutil
import subprocess
import sys
import tempfile
import time

from made_files import Made, register

import halfscope
from halfscope import distributed as spread

WORKERS = (1, 2, 4)

def simulate(folder, steps):
    program = os.environ.get("HALFSCOPE_PROGRAM") or shutil.which("halfscope")
    subprocess.run([program, "simulate", "mlp", "--steps", str(steps), "--batch", "4", "--seed", "1",
                    "--out", folder], check=True, stdout=subprocess.DEVNULL)


def make_ranks(first, folder, ranks):
    """Makes a run with `ranks` copies of one rank. Returns its size in bytes."""
    manifest = json.loads((first / "run.json").read_text())
    manifest.update(world_size=ranks, sharded=["weight_grad"])
    for rank in range(ranks):
        own = folder / f"rank-{rank:04}"
        shutil.copytree(first, own)
        (own / "run.json").write_text(json.dumps({**manifest, "rank": rank}))
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def resident():
    """The largest memory of this process in bytes. (ru_maxrss would start at the parent's.)"""
    (line,) = [line for line in open("/proc/self/status") if line.startswith("VmHWM")]
    return int(line.split()[1]) * 1024


def count(log, workers):
    """(seconds, largest memory of a worker in bytes, counts)"""
    import distributed

    with distributed.LocalCluster(n_workers=workers, threads_per_worker=1,
                                  dashboard_address=None) as cluster:
        with distributed.Client(cluster) as client:
            client.run(register)
            begin = time.perf_counter()
            counts = spread.count(log, client=client, progress=False)
            seconds = time.perf_counter() - begin
            return seconds, max(client.run(resident).values()), counts


def measure(what, log, size, workers):
    seconds, held, counts = count(log, workers)
    row = {"what": what, "workers": workers, "bytes": size, "seconds": seconds, "resident": held,
           "record": counts.nbytes}
    print(f"{what:10} {workers} workers  {size / 1e9:7.2f} GB  {seconds:6.1f} s  "
          f"{size / seconds / 1e6:6.0f} MB/s  worker {held / 1e6:4.0f} MB  record "
          f"{counts.nbytes / 1e6:.2f} MB", flush=True)
    return row, counts


def measure_ranks(arguments):
    rows = []
    with tempfile.TemporaryDirectory(prefix="halfscope-bench-") as name:
        simulate(pathlib.Path(name) / "first", arguments.steps)
        for ranks in (arguments.ranks // 4, arguments.ranks // 2, arguments.ranks):
            folder = pathlib.Path(name) / f"{ranks}-ranks"
            size = make_ranks(pathlib.Path(name) / "first", folder, ranks)
            if ranks < arguments.ranks:
                rows.append(measure(f"{ranks} ranks", folder, size, 2)[0])
        found = [measure(f"{arguments.ranks} ranks", folder, size, workers) for workers in WORKERS]
        rows += [row for row, _ in found]
        begin = time.perf_counter()
        alone = halfscope.count(folder)
        print(f"one process: {time.perf_counter() - begin:.1f} s; the same bytes: "
              f"{all(counts == alone for _, counts in found)}", flush=True)
    return rows


def measure_made(arguments):
    register()
    sizes = [gigabytes for gigabytes in (1, 4, 16, 64) if gigabytes <= arguments.gigabytes]
    rows = [measure("gradients", f"made://{size}", size * 4 * Made.size, 2)[0] for size in sizes]
    rows += [measure("gradients", f"made://{sizes[-1]}", sizes[-1] * 4 * Made.size, workers)[0]
             for workers in WORKERS if workers != 2]
    return rows


def plot(rows, file):
    import altair as alt
    import pandas as pd

    data = pd.DataFrame(rows)
    data["gigabytes"] = data.bytes / 1e9
    data["log"] = data.what.where(~data.what.str.endswith("ranks"), "run log of ranks")
    two = data[data.workers == 2]
    most = data[data.bytes == data.groupby("log").bytes.transform("max")]
    color = alt.Color("log", title=None, legend=alt.Legend(orient="top"))
    left = alt.Chart(two, title="2 workers").mark_line(point=True).encode(
        x=alt.X("gigabytes", title="GB counted", scale=alt.Scale(type="log")),
        y=alt.Y("seconds", title="seconds", scale=alt.Scale(type="log")), color=color)
    right = alt.Chart(most, title="all of it").mark_line(point=True).encode(
        x=alt.X("workers:O", title="workers", axis=alt.Axis(labelAngle=0)),
        y=alt.Y("seconds", title="seconds"), color=color)
    (left.properties(width=260, height=200) | right.properties(width=160, height=200)).save(file)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json")
    parser.add_argument("--plot")
    parser.add_argument("--ranks", type=int, default=512)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--gigabytes", type=int, default=16)
    arguments = parser.parse_args()
    model = [line.partition(": ")[2] for line in open("/proc/cpuinfo") if "model name" in line][:1]
    print(f"Python {platform.python_version()}, {' '.join(model).strip()}, {os.cpu_count()} processors")
    rows = measure_ranks(arguments) + measure_made(arguments)
    if arguments.json:
        pathlib.Path(arguments.json).write_text(json.dumps(rows, indent=1) + "\n")
    if arguments.plot:
        plot(rows, arguments.plot)


if __name__ == "__main__":
    sys.exit(main())
