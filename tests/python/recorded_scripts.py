# SPDX-License-Identifier: Apache-2.0
"""Scripts that the tests run by `halfscope run` as they are, and with a Recorder added by hand."""

import json
import os
import pathlib
import subprocess
import sys

from conftest import Log
from small_runs import require_same_log

SCRIPTS = pathlib.Path(__file__).resolve().parent / "scripts"
EVERY = ("--every", 5, "--sample-every", 10)


def execute(*command, folder, expect=0, **variables):
    """Runs a command in a folder. Returns (stdout, stderr)."""
    done = subprocess.run([sys.executable, *map(str, command)], cwd=folder, capture_output=True, text=True,
                          timeout=300, env={**os.environ, "OMP_NUM_THREADS": "1", **variables})
    assert done.returncode == expect, done.stderr + done.stdout
    return done.stdout, done.stderr


def recorded(script, folder, *arguments, options=EVERY, **how):
    """Runs a script by `halfscope run`; its log is folder/run."""
    return execute("-m", "halfscope.run", *options, "--out", folder / "run", script, *arguments,
                   folder=folder, **how)


def by_hand(script, folder, edits, *arguments, **how):
    """Runs a script whose source was edited: [(text that occurs once, replacement)]. RECORDER( in a
    replacement makes a Recorder with the settings of EVERY. Logs are below folder/by-hand."""
    source = (SCRIPTS / script).read_text(encoding="utf-8")
    for old, new in edits:
        assert source.count(old) == 1, old
        source = source.replace(old, new)
    settings = f"every={EVERY[1]}, sample_every={EVERY[3]}"
    source = source.replace("RECORDER(", f"__import__('halfscope.torch').torch.Recorder({settings}, ")
    edited = folder / "by-hand" / script
    edited.parent.mkdir(exist_ok=True)
    edited.write_text(source, encoding="utf-8")
    return execute(edited, *arguments, folder=edited.parent, **how)


def require_same_logs(folder, logs):
    """logs: {log of `halfscope run` below folder/run: log by hand below folder/by-hand}"""
    for run, hand in logs.items():
        require_same_log(Log(folder / "run" / run), Log(folder / "by-hand" / hand))
        assert manifest(folder / "run" / run) == manifest(folder / "by-hand" / hand)


def manifest(log):
    return json.loads((log / "run.json").read_text(encoding="utf-8"))
