# SPDX-License-Identifier: Apache-2.0
"""A stand-in for build/bundle, to run tools/gpu/gpu.sh without a GPU: its programs are those of the
emulated device (tests/cuda/emulated), where they were built, or else the program without a GPU."""

import json
import os
import pathlib
import shutil
import subprocess

import pytest

from program import BUILD, PROGRAM, ROOT

IN_PYTHON = ["recording", "optimizers", "fp8_casts", "fp8_products"]  # steps that need PyTorch
WITHOUT_TORCH = {"HALFSCOPE_GPU_PYTHON": "/nonexistent/python"}
EMULATED = BUILD / "bin/emulated_halfscope"
PASSES = "echo 'All tests passed (12 assertions in 3 test cases)'\n"


def script(path, text):
    path.unlink(missing_ok=True)
    path.write_text("#!/usr/bin/env bash\n" + text)
    path.chmod(0o755)


def digits(folder):
    sklearn = pytest.importorskip("sklearn.datasets")
    folder.mkdir(parents=True)
    shutil.copy(pathlib.Path(sklearn.__file__).parent / "data/digits.csv.gz", folder)


def programs(folder):
    """The program and its tests. Those of plans need no device, but cuDNN itself."""
    if not EMULATED.exists():
        (folder / "halfscope").symlink_to(PROGRAM)
        script(folder / "test_cuda", PASSES)
        script(folder / "test_cudnn", PASSES)
        return
    (folder / "halfscope").symlink_to(EMULATED)
    (folder / "test_cuda").symlink_to(BUILD / "bin/test_emulated_array")
    script(folder / "test_cudnn",
           f'[[ $1 != plans:* ]] || exec {BUILD}/bin/test_cudnn "$@"\nexec {BUILD}/bin/test_emulated_cudnn "$@"\n')


def made_bundle(made):
    """A bundle whose probe, benchmark and properties of the device alone are made up."""
    (made / "bin").mkdir(parents=True)
    for file in (ROOT / "tools/gpu").glob("*.*"):
        shutil.copy(file, made)
    shutil.copytree(ROOT / "bench", made / "bench", ignore=lambda _, names: {
        name for name in names if "recording" not in name})
    digits(made / "data/digits")
    shutil.copy(ROOT / "tests/cuda/h100.json", made / "data")
    programs(made / "bin")
    script(made / "bin/write_device", f"exec cat {made}/data/h100.json\n")
    script(made / "bin/probe_tensor_core",
           "echo 'fact: part mma = as the model says' && mkdir \"$1\" && echo '{}' >\"$1/mma.json\"\n")
    script(made / "bin/bench_cuda",
           "echo 'read device memory 1.0 3000.0 1.00'\n"
           "echo 'table by parts of 1 GiB of F32 1.0 2700.0 0.90'\necho '[]' >\"$2\"\n")
    return made


def gpu(bundle, *arguments, code=0, **environment):
    done = subprocess.run(["bash", bundle / "gpu.sh", *map(str, arguments)], capture_output=True,
                          text=True, timeout=500, env={**os.environ, **WITHOUT_TORCH, **environment})
    assert done.returncode == code, done.stdout + done.stderr
    return done


def summary(out):
    read = json.loads((out / "summary.json").read_text())
    return {row["step"]: row for row in read["steps"]}
