# SPDX-License-Identifier: Apache-2.0
"""Speed of tensorboard's own Python reader on the files of bench_event_file.

    bench_event_file.py [--json FILE] [--records N]
"""

import argparse
import json
import pathlib
import subprocess
import tempfile
import time

from tensorboard.backend.event_processing import event_file_loader

PROGRAM = pathlib.Path(__file__).resolve().parents[1] / "build/bin/bench_event_file"


def seconds(file):
    """The better of two passes over all events, on one thread."""
    best = float("inf")
    for _ in range(2):
        start = time.process_time()
        for _ in event_file_loader.EventFileLoader(str(file)).Load():
            pass
        best = min(best, time.process_time() - start)
    return best


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--json")
    parser.add_argument("--records", type=int, default=100_000)
    options = parser.parse_args()
    results = []
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([PROGRAM, "--records", str(options.records), "--keep", folder], check=True,
                       stdout=subprocess.DEVNULL)
        for file in sorted(pathlib.Path(folder).glob("*.tfevents")):
            results.append({"name": f"tensorboard's reader: {file.stem}", "threads": 1,
                            "value": file.stat().st_size / seconds(file) / 1e9, "unit": "GB/s"})
    for result in results:
        print(f"{result['name']:<55} {result['value']:8.4f} GB/s")
    if options.json:
        with open(options.json, "w") as file:
            json.dump(results, file, indent=1)


if __name__ == "__main__":
    main()
