# SPDX-License-Identifier: Apache-2.0
"""How often each value of a log is read for one answer: page by page, in a memory that holds few of
them (page_reads.c). A value that is looked at again while its page is still there is read once."""

import json
import os
import pathlib
import shutil
import subprocess
import zipfile

import numpy as np
import pytest
import torch
from safetensors.numpy import save_file
from safetensors.torch import save_file as save_torch_file

from program import DIGITS, PROGRAM

COMPILER = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
PAGE = 4096
HELD = 1536  # pages: some tensors of a step fit, a step does not
LARGE = 3 * HELD * PAGE // 4  # elements in binary32 of a tensor that does not
# Of an archive, what each look at the file needs: the directory's place is searched for from the
# end, and the headers of arrays are unpacked in pieces.
DIRECTORY, HEADER = 2**16 + PAGE, 4 * PAGE
MOST = 2


def tensors(step, names=("a", "b", "c", "d"), size=300_000):
    """A step's weights, each with its update's outcome and its gradient."""
    random = np.random.default_rng(step)
    of_step = {}
    for name in names:
        weight = random.normal(0, 0.05, size).astype(np.float32)
        gradient = np.exp2(random.normal(-18, 5, size)).astype(np.float32)
        of_step |= {f"weight/{name}": weight, f"weight_grad/{name}": gradient,
                    f"weight_after/{name}": weight - np.float32(1e-3) * gradient}
    return of_step


def in_torch(of_step, dtype=torch.float32):
    return {name: torch.from_numpy(values).to(dtype) for name, values in of_step.items()}


def steps(folder, write):
    for step in range(3):
        write(folder / f"step_{step}", step)
    return folder


def run_log(folder):
    """A run log, its sampled tensors much larger than they were."""
    log = shutil.copytree(DIGITS, folder / "log")
    names = ("conv1.weight", "conv1.bias", "conv2.weight", "conv2.bias")
    large = {name.replace("weight_after/", "update/"): values
             for name, values in tensors(0, names).items()}
    for sample in (log / "tensors").iterdir():
        save_file(large, sample)
    return log


def npy(path, values):
    np.save(path, values)
    return path


LOGS = {
    "safetensors": lambda to: steps(to, lambda path, i: save_file(tensors(i), f"{path}.safetensors")),
    "NPY": lambda to: npy(to / "g.npy", tensors(0, "a", LARGE)["weight_grad/a"]),
    "NPZ": lambda to: steps(to, lambda path, i: np.savez(f"{path}.npz", **tensors(i))),
    "packed NPZ": lambda to: steps(
        to, lambda path, i: np.savez_compressed(f"{path}.npz", **tensors(i))),
    "torch.save": lambda to: steps(
        to, lambda path, i: torch.save(in_torch(tensors(i)), f"{path}.pt")),
    "bfloat16": lambda to: steps(to, lambda path, i: save_torch_file(
        in_torch(tensors(i, size=600_000), torch.bfloat16), f"{path}.safetensors")),
    "large gradients": lambda to: steps(to, lambda path, i: save_file(
        {"weight_grad/a": tensors(i, "a", LARGE)["weight_grad/a"]}, f"{path}.safetensors")),
    "run log": run_log,
}


def values_in(path):
    """Where each tensor's values lie: their first byte, and the one after the last."""
    if path.suffix == ".safetensors":
        data = path.read_bytes()
        start = 8 + int.from_bytes(data[:8], "little")
        header = json.loads(data[8:start])
        return [(start + first, start + end) for first, end in
                (entry["data_offsets"] for name, entry in header.items() if name[0] != "_")]
    if path.suffix == ".npy":
        return [(HEADER, path.stat().st_size)]
    if path.suffix not in (".npz", ".pt"):
        return []
    end = path.stat().st_size - DIRECTORY
    with zipfile.ZipFile(path) as archive:
        return [(at + HEADER, min(at + member.compress_size, end)) for member in archive.infolist()
                if (at := member.header_offset) + 2 * HEADER < end
                and member.compress_size > 2 * HEADER]


def reads_of(arguments, folder, counter):
    """How often each page that holds values alone is read, by file."""
    out = folder.parent / "reads.txt"
    environment = os.environ | {"LD_PRELOAD": str(counter), "PAGE_READS_FOLDER": str(folder),
                                "PAGE_READS_HELD": str(HELD), "PAGE_READS_OUT": str(out)}
    one = {min(os.sched_getaffinity(0))}  # several threads hold more tensors at once
    done = subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True,
                          env=environment, preexec_fn=lambda: os.sched_setaffinity(0, one))
    assert done.returncode == 0, done.stderr
    found = {}
    for line in out.read_text().splitlines():
        name, counts = line.split("\t")
        counts = np.array(counts.split(), dtype=int)
        pages = [counts[-(-first // PAGE):last // PAGE]
                 for first, last in values_in(pathlib.Path(name))]
        if pages:
            found[os.path.relpath(name, folder)] = np.concatenate(pages)
    return found


@pytest.fixture(scope="module")
def counter(tmp_path_factory):
    if COMPILER is None:
        pytest.skip("a C compiler is missing: what is read is not counted")
    library = tmp_path_factory.mktemp("counter") / "page_reads.so"
    subprocess.run([COMPILER, "-O2", "-shared", "-fPIC", "-o", library,
                    pathlib.Path(__file__).with_name("page_reads.c"), "-ldl", "-lpthread"],
                   check=True)
    return library


@pytest.mark.parametrize("kind", LOGS)
def test_each_value_is_read_twice_at_most(kind, tmp_path, counter):
    folder = tmp_path.resolve() / "logs"
    folder.mkdir()
    log = LOGS[kind](folder)
    for arguments in (["recommend", log], ["analyze", log]):
        found = reads_of(arguments, folder, counter)
        assert found
        for name, reads in found.items():
            assert len(reads) > HELD, "a page that is read again has left the memory before"
            least = 1 if arguments[0] == "recommend" else 0
            assert reads.min() >= least and reads.max() <= MOST, (name, np.bincount(reads))
