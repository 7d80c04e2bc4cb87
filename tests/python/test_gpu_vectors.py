# SPDX-License-Identifier: Apache-2.0
"""Golden vectors that only a GPU can give: those in tests/data/gpu are judged, and the programs that make
them run on a CPU, whose vectors stand in for them in a temporary folder."""

import functools
import json
import subprocess
import sys

import pytest

import gpu_vectors as judges
from frameworks import python_with_torch
from gpu_bundle import IN_PYTHON, gpu, made_bundle, summary
from program import ROOT

COMMITTED = ROOT / "tests/data/gpu"  # from OUT/vectors of ./run gpu
JUDGES = {**{f"optimizers-{dtype}": functools.partial(judges.judge_optimizers, dtype=dtype) for dtype in judges.DTYPES},
          "powf": judges.judge_powers, "fp8-casts": judges.judge_casts, "fp8-products": judges.judge_products}


@pytest.fixture(scope="module")
def dry(tmp_path_factory):
    """OUT of the steps that need PyTorch, on a CPU, and their rows of the summary."""
    folder = tmp_path_factory.mktemp("gpu")
    gpu(made_bundle(folder / "bundle"), folder / "out", "resnet50", *IN_PYTHON, HALFSCOPE_GPU_DRY="1",
        HALFSCOPE_GPU_PYTHON=python_with_torch())
    rows = summary(folder / "out")
    assert {row["result"] for row in rows.values()} == {"passed"}
    return folder / "out", {name: row["facts"] for name, row in rows.items()}


def read(folder, name):
    return json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", JUDGES)
def test_vectors_of_a_gpu(name):
    if not (COMMITTED / f"{name}.json").exists():
        pytest.skip(f"no GPU has made {name}.json yet: docs/gpu.md says how it gets into tests/data/gpu")
    content = read(COMMITTED, name)
    assert content["device"] != "cpu"
    assert JUDGES[name](content) > 1000


def test_steps_of_optimizers(dry):
    out, facts = dry
    assert facts["optimizers"]["values that differ beyond the rows' bounds"] == "0"
    results = json.loads((out / "optimizers.json").read_text())["results"]
    assert {row["kind"] for row in results} == {"single", "foreach", "fused"}
    assert len(results) == 3 * 3 * 6
    for dtype in judges.DTYPES:
        assert JUDGES[f"optimizers-{dtype}"](read(out / "vectors", f"optimizers-{dtype}")) > 1e5
    assert judges.judge_powers(read(out / "vectors", "powf")) == 5 * 4096
    content = read(out / "vectors", "optimizers-float32")
    content["cases"][0]["settings"]["lr"] *= 1.001
    with pytest.raises(AssertionError):
        judges.judge_optimizers(content, "float32")


def test_casts_to_fp8_and_back(dry):
    out, facts = dry
    assert facts["fp8_casts"]["FP8 casts that are halfscope's in neither mode"] == "none"
    assert facts["fp8_casts"]["FP8 casts that differ from cpu"].startswith("0 of ")
    content = read(out / "vectors", "fp8-casts")
    assert len(content["casts"]) == 24
    assert judges.judge_casts(content) == 4 * (2 * 2**16 + 2**21 + 3 * 256)
    content["casts"]["float16 to float8_e5m2"]["zlib"] = content["casts"]["float16 to float8_e4m3fn"]["zlib"]
    with pytest.raises(AssertionError):
        judges.judge_casts(content)


def test_products_of_fp8(dry):
    out, facts = dry
    assert facts["fp8_products"]["FP8 products, fast, chains of all"].endswith(" of 256 as hopper's model")
    content = read(out / "vectors", "fp8-products")
    assert judges.judge_products(content) == 2 * 2 * 2 * 2 * 64
    content["cases"][0]["fast"]["predicted"]["all"] += 1
    with pytest.raises(AssertionError):
        judges.judge_products(content)


def test_files_to_commit(dry):
    out, _ = dry
    assert {path.stem for path in (out / "vectors").iterdir()} == set(JUDGES)
    assert sum(path.stat().st_size for path in (out / "vectors").iterdir()) < 1e6


def test_times_of_pytorch(dry):
    out, facts = dry
    for mode in ("cudnn.benchmark", "deterministic"):
        assert " ms a step (" in facts["resnet50"][f"PyTorch's resnet50, mixed, channels_last, {mode}"]
    assert " % more CPU time (" in facts["recording"]["recorder, perceptron, every tenth recorded"]
    assert len(json.loads((out / "recording.json").read_text())) == 3


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
