# SPDX-License-Identifier: Apache-2.0
"""Golden vectors that only a GPU can give: those in tests/data/gpu are judged, and the programs that make
them run on a CPU, whose vectors stand in for them in a temporary folder."""

import functools
import json
import os
import subprocess
import sys

import pytest

import gpu_vectors as judges
from program import BUILD, PROGRAM, ROOT

COMMITTED = ROOT / "tests/data/gpu"  # from OUT/vectors of ./run gpu
JUDGES = {**{f"optimizers-{dtype}": functools.partial(judges.judge_optimizers, dtype=dtype) for dtype in judges.DTYPES},
          "powf": judges.judge_powers, "fp8-casts": judges.judge_casts, "fp8-products": judges.judge_products}
PYTHONS = (sys.executable, BUILD / "frameworks/torch/bin/python")
MODULES = ROOT / "tools/gpu/modules.py"


@functools.cache
def python_with_torch():
    """A Python with a PyTorch that has what the programs need, or None."""
    for python in PYTHONS:
        if os.path.exists(python):
            said = subprocess.run([python, "-B", MODULES, "cpu"], capture_output=True, text=True).stdout
            if said.count("\n") == 2 and "missing" not in said:
                return python
    return None


def made(program, *arguments, code=0):
    python = python_with_torch()
    if python is None:
        pytest.skip("needs PyTorch 2.3 or later: ./run frameworks torch installs one")
    done = subprocess.run([python, "-B", ROOT / "tools/gpu" / program, "--device", "cpu", *map(str, arguments)],
                          capture_output=True, text=True, timeout=300,
                          env={**os.environ, "HALFSCOPE_PROGRAM": str(PROGRAM)})
    assert done.returncode == code, done.stdout + done.stderr
    return dict(line[len("fact: "):].split(" = ", 1) for line in done.stdout.splitlines() if line.startswith("fact: "))


def read(folder, name):
    return json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", JUDGES)
def test_vectors_of_a_gpu(name):
    if not (COMMITTED / f"{name}.json").exists():
        pytest.skip(f"no GPU has made {name}.json yet: docs/gpu.md says how it gets into tests/data/gpu")
    content = read(COMMITTED, name)
    assert content["device"] != "cpu"
    assert JUDGES[name](content) > 1000


def test_steps_of_optimizers(tmp_path):
    facts = made("optimizers.py", tmp_path / "optimizers.json", tmp_path)
    assert facts["values that differ beyond the rows' bounds"] == "0"
    results = json.loads((tmp_path / "optimizers.json").read_text())["results"]
    assert {row["kind"] for row in results} == {"single", "foreach", "fused"}
    assert len(results) == 3 * 3 * 6
    for dtype in judges.DTYPES:
        assert JUDGES[f"optimizers-{dtype}"](read(tmp_path, f"optimizers-{dtype}")) > 1e5
    assert judges.judge_powers(read(tmp_path, "powf")) == 5 * 4096
    content = read(tmp_path, "optimizers-float32")
    assert sum(file.stat().st_size for file in tmp_path.iterdir()) < 1e6
    content["cases"][0]["settings"]["lr"] *= 1.001
    with pytest.raises(AssertionError):
        judges.judge_optimizers(content, "float32")


def test_casts_to_fp8_and_back(tmp_path):
    facts = made("fp8_casts.py", tmp_path)
    assert facts["FP8 casts that are halfscope's in neither mode"] == "none"
    assert facts["FP8 casts that differ from cpu"].startswith("0 of ")
    content = read(tmp_path, "fp8-casts")
    assert len(content["casts"]) == 24
    assert judges.judge_casts(content) == 4 * (2 * 2**16 + 2**21 + 3 * 256)
    content["casts"]["float16 to float8_e5m2"]["zlib"] = content["casts"]["float16 to float8_e4m3fn"]["zlib"]
    with pytest.raises(AssertionError):
        judges.judge_casts(content)


def test_products_of_fp8(tmp_path):
    facts = made("fp8_products.py", tmp_path)
    assert facts["FP8 products, fast, chains of all"].endswith(" of 256 as hopper's model")
    content = read(tmp_path, "fp8-products")
    assert judges.judge_products(content) == 2 * 2 * 2 * 2 * 64
    content["cases"][0]["fast"]["predicted"]["all"] += 1
    with pytest.raises(AssertionError):
        judges.judge_products(content)


def test_resnet50_of_pytorch():
    facts = made("resnet50_torch.py")
    assert all(float(facts[f"PyTorch's resnet50, mixed, channels_last, {mode}"].split(" ms a step")[0]) > 0
               for mode in ("cudnn.benchmark", "deterministic"))


@pytest.mark.parametrize("program, outputs", [("optimizers.py", 2), ("fp8_casts.py", 1), ("fp8_products.py", 1),
                                              ("resnet50_torch.py", 0)])
def test_no_gpu_is_told_in_one_line(program, outputs, tmp_path):
    """Without a GPU, or without a PyTorch of these years."""
    pytest.importorskip("torch")
    done = subprocess.run([sys.executable, "-B", ROOT / "tools/gpu" / program, *[tmp_path / "out"] * outputs],
                          capture_output=True, text=True, timeout=100)
    if done.returncode == 0:
        pytest.skip("this machine has a GPU")
    assert done.returncode == 3
    assert done.stderr.startswith(f"{program}: torch: ") and done.stderr.count("\n") == 1
    assert not list(tmp_path.iterdir())
