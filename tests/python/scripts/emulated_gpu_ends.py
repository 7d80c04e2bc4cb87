# SPDX-License-Identifier: Apache-2.0
"""Records four steps "on a GPU" and ends in the given way: emulated_gpu_ends.py WAY FOLDER. Prints a JSON
list: the number of steps in the log after each step; for "full", the number of warnings."""

import contextlib
import json
import os
import pathlib
import resource
import sys
import warnings

import torch
from emulated_gpu_runs import Small, on_a_gpu

from halfscope import _halfscope
from halfscope.torch import Recorder

way, folder = sys.argv[1:]
written = []


def steps_in_log():
    return len(_halfscope.read_run_log(folder)[0])


def in_a_fork(train):
    if os.fork() == 0:
        with warnings.catch_warnings(record=True):
            train()
        os._exit(0)
    os.wait()


def main():
    torch.manual_seed(7)
    model = Small()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    recorder = Recorder(model, optimizer, folder, on_error="warn" if way in ("fork", "full") else "raise").start()

    def train():
        optimizer.zero_grad()
        recorder.loss(model.loss(*model.batch())).backward()
        optimizer.step()

    if way == "alert":
        recorder.alert("loss > 0", do=lambda lines: None)
    for step in range(4 if way != "full" else 8):
        if way == "full" and step == 2:
            (events,) = pathlib.Path(folder).glob("events*")
            resource.setrlimit(resource.RLIMIT_FSIZE, (events.stat().st_size,) * 2)
        if way == "fork" and step == 2:
            in_a_fork(train)
        if way == "error" and step == 3:
            with contextlib.suppress(ZeroDivisionError), recorder_of(recorder):
                model.loss(*model.batch()).backward()
                raise ZeroDivisionError
            break
        train()
        if way == "summary":
            with contextlib.suppress(_halfscope.BadInput):  # the steps are too few for an answer
                recorder.summary()
        written.append(len(caught) if way == "full" else steps_in_log())
    if way == "stop":
        recorder.stop()


@contextlib.contextmanager
def recorder_of(recorder):
    """The end of `with Recorder(...)`."""
    try:
        yield
    finally:
        recorder.stop()


with on_a_gpu(), warnings.catch_warnings(record=way == "full") as caught:
    warnings.simplefilter("always")
    main()
    print(json.dumps(written))
    sys.stdout.flush()
