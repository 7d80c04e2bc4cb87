# SPDX-License-Identifier: Apache-2.0
"""What tensorboard's own Python reader does with the files of `bench_event_file --keep FOLDER`:

    python bench/bench_event_file.py FOLDER
"""
import pathlib
import sys
import time

from tensorboard.backend.event_processing import event_file_loader

for file in sorted(pathlib.Path(sys.argv[1]).glob("*.tfevents")):
    best = float("inf")
    for _ in range(2):
        start = time.process_time()
        events = sum(1 for _ in event_file_loader.EventFileLoader(str(file)).Load())
        best = min(best, time.process_time() - start)
    size = file.stat().st_size
    print(f"{file.name}: {events} events, {size / best / 1e6:.1f} MB/s")
