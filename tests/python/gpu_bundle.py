# SPDX-License-Identifier: Apache-2.0
"""A stand-in for build/bundle, to run tools/gpu/gpu.sh without a GPU."""

import json
import os
import pathlib
import shutil
import subprocess

import pytest

from program import PROGRAM, ROOT

IN_PYTHON = ["recording", "optimizers", "fp8_casts", "fp8_products"]  # steps that need PyTorch
WITHOUT_TORCH = {"HALFSCOPE_GPU_PYTHON": "/nonexistent/python"}
PASSES = "echo 'All tests passed (12 assertions in 3 test cases)'\n"


def script(path, text):
    path.write_text("#!/usr/bin/env bash\n" + text)
    path.chmod(0o755)


def digits(folder):
    sklearn = pytest.importorskip("sklearn.datasets")
    folder.mkdir(parents=True)
    shutil.copy(pathlib.Path(sklearn.__file__).parent / "data/digits.csv.gz", folder)


def made_bundle(made):
    """A bundle with the real program; tests and benchmarks that pass at once."""
    (made / "bin").mkdir(parents=True)
    for file in (ROOT / "tools/gpu").glob("*.*"):
        shutil.copy(file, made)
    shutil.copytree(ROOT / "bench", made / "bench", ignore=lambda _, names: {
        name for name in names if "recording" not in name})
    digits(made / "data/digits")
    shutil.copy(ROOT / "tests/cuda/h100.json", made / "data")
    script(made / "bin/halfscope", f'exec {PROGRAM} "$@"\n')
    for name in ("test_cuda", "test_cudnn"):
        script(made / "bin" / name, PASSES)
    script(made / "bin/write_device", "echo '{\"cudnn_device_properties\": {}}'\n")
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
