# SPDX-License-Identifier: Apache-2.0
"""How often a log's files are opened for one answer, as the kernel is asked: by strace."""

import collections
import os
import re
import shutil
import subprocess

import numpy as np
import pytest
import torch
from safetensors.numpy import save_file

from program import DIGITS, PROGRAM

STRACE = ["strace", "-f", "-qq", "-e", "trace=open,openat", "-o"]
OPENED = re.compile(r'open(?:at)?\([^"]*"([^"]*)", ([A-Z_|]*)(.*)')
COMMANDS = {
    "analyze": lambda log: ["analyze", log],
    "analyze --formats": lambda log: ["analyze", log, "--formats", "--what-if"],
    "recommend": lambda log: ["recommend", log],
    "policies": lambda log: ["policies", log, "--assume-constant-between"],
    "compare": lambda log: ["compare", log, log],
}


def tensors(seed):
    random = np.random.default_rng(seed)
    roles = {"weight_grad/a": -18, "weight_grad/b": -30, "weight/a": -3, "weight_after/a": -3}
    return {name: np.exp2(random.normal(at, 5, 999)).astype(np.float32)
            for name, at in roles.items()}


def tensor_files(folder):
    folder.mkdir()
    for step in range(3):
        save_file(tensors(step), folder / f"step_{step}-a.safetensors")
        np.savez(folder / f"step_{step}-b.npz", **{"weight_grad/c": tensors(step)["weight_grad/a"]})
    return folder


def ranks(folder):
    for rank in ("rank-0000", "rank-0001"):
        shutil.copytree(DIGITS, folder / rank)
    return folder


def written(path, write):
    write(path)
    return path


def console(path):
    lines = "".join(
        f"[2024-05-02 12:00:{step % 60:02}] [INFO] [logging.py:96:log_dist] [Rank 0] step={step}, "
        f"skipped=0, lr=[0.001], mom=[[0.9, 0.999]]\n" for step in range(10, 2000, 10))
    path.write_text(lines + "[deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: "
                    "65536, reducing to 32768\n")


def wandb(path):
    path.write_text("".join('{"_step": %d, "loss": 1.5, "loss_scale": 1024}\n' % i
                            for i in range(50)))


LOGS = {
    "safetensors": lambda to: shutil.copy(DIGITS / "tensors/step-000100.safetensors", to),
    "npy": lambda to: written(to / "g.npy", lambda p: np.save(p, tensors(1)["weight_grad/a"])),
    "npz": lambda to: written(to / "g.npz", lambda p: np.savez(p, **tensors(1))),
    "torch.save": lambda to: written(to / "g.pt", lambda p: torch.save(
        {name: torch.from_numpy(values) for name, values in tensors(1).items()}, p)),
    "folder of tensors": lambda to: tensor_files(to / "steps"),
    "run log": lambda to: shutil.copytree(DIGITS, to / "log"),
    "ranks": lambda to: ranks(to / "ranks"),
    "TensorBoard": lambda to: shutil.copy(next(DIGITS.glob("events*")), to / "events.out.tfevents.1"),
    "console": lambda to: written(to / "out.log", console),
    "wandb": lambda to: written(to / "history.jsonl", wandb),
}


def opened(program, arguments, folder):
    """How often the program opens each file in the folder, and whether it answers."""
    trace = folder.parent / "trace.txt"
    done = subprocess.run([*STRACE, trace, program, *map(str, arguments)], capture_output=True,
                          text=True)
    times = collections.Counter()
    for line in trace.read_text(errors="replace").splitlines():
        found = OPENED.search(line)
        if not found or "O_DIRECTORY" in found[2] or " = -1 " in found[3]:
            continue
        if found[1].startswith(str(folder)):
            times[os.path.relpath(found[1], folder)] += 1
    return times, done


def can_trace():
    if shutil.which("strace") is None:
        return False
    return subprocess.run([*STRACE, os.devnull, "true"], capture_output=True).returncode == 0


@pytest.mark.skipif(not can_trace(), reason="strace is missing, or may not trace here: the files "
                    "that are opened are not counted")
@pytest.mark.parametrize("kind", LOGS)
def test_each_file_is_opened_once(kind, tmp_path):
    folder = tmp_path / "logs"
    folder.mkdir()
    log = LOGS[kind](folder)
    answers = 0
    for name, arguments in COMMANDS.items():
        times, done = opened(PROGRAM, arguments(log), folder)
        answers += done.returncode == 0
        # The recommendation reads the ranks again, each alone, after what reads them together.
        most = 2 if (kind, name) == ("ranks", "recommend") else 1
        assert times and max(times.values()) <= most, (name, times, done.stderr)
    assert answers >= 2, "analyze and recommend answer for each of these"
