# SPDX-License-Identifier: Apache-2.0
"""`halfscope compare --sums`: results of one sum in other orders, and results with a fault."""

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import save_file

import halfscope
from program import run, valid_json_of, words_of
from sum_runs import write_rank

LENGTH = 1024
SUMS = f"length={LENGTH},format=fp16"


def summed(addends, order):
    result = addends[order[0]]
    for i in order[1:]:
        result = result + addends[i]
    return result


def files(tmp_path, cancel=False, fault=0.0, magnitudes=False):
    """Two files of 200 sums of 1,024 FP16 addends, in two random orders."""
    rng = np.random.default_rng(1)
    addends = rng.uniform(0.1, 1, (LENGTH, 200)).astype(np.float16)
    if cancel:
        addends = (addends * rng.choice([-1, 1], addends.shape)).astype(np.float16)
    paths = []
    for name in "ab":
        result = summed(addends, rng.permutation(LENGTH))
        if name == "b":
            result[7] += np.float16(fault)
        tensors = {"weight_grad/w": result}
        if magnitudes:
            tensors["weight_grad/magnitudes"] = np.abs(addends.astype(np.float32)).sum(0)
        paths.append(tmp_path / f"{name}.safetensors")
        save_file(tensors, paths[-1])
    return paths


def judged(paths, sums=SUMS):
    found = valid_json_of("compare", *paths, "--sums", sums)
    assert found["sums"]["length"] == LENGTH and found["sums"]["format"] == "binary16"
    (tensor,) = [t for t in found["sums"]["by_tensor"] if t["name"] == "weight_grad/w"]
    assert tensor["within"] + tensor["between"] + tensor["above"] == tensor["elements"] == 200
    return tensor


def test_other_orders_are_rounding(tmp_path):
    paths = files(tmp_path)
    tensor = judged(paths)
    assert tensor["verdict"] == "within" and 0 < tensor["worst_ratio"] <= 1
    said = words_of("compare", *paths, "--sums", SUMS)
    assert "Sums of 1,024 addends in FP16: rounding or a bug" in said
    assert "The differences in weight_grad/w are rounding: random orders give as large ones." in said
    run("compare", *paths, "--sums", SUMS, "--out", tmp_path / "page.html")
    assert 'id="sums"' in (tmp_path / "page.html").read_text()


def test_a_fault_is_above_every_order(tmp_path):
    paths = files(tmp_path, fault=1000, magnitudes=True)
    tensor = judged(paths, SUMS + ",magnitudes=weight_grad/magnitudes")
    assert (tensor["verdict"], tensor["above"], tensor["worst"]) == ("above", 1, 7)
    assert "No order of addition explains the differences in weight_grad/w." in words_of(
        "compare", *paths, "--sums", SUMS + ",magnitudes=weight_grad/magnitudes")


def test_values_that_cancel_need_their_magnitudes(tmp_path):
    paths = files(tmp_path, cancel=True, magnitudes=True)
    tensor = judged(paths)
    assert tensor["verdict"] == "cannot tell" and tensor["magnitudes_missing"]
    assert "give it with magnitudes=TENSOR" in words_of("compare", *paths, "--sums", SUMS)
    tensor = judged(paths, SUMS + ",magnitudes=weight_grad/magnitudes")
    assert tensor["verdict"] == "within" and "magnitudes_missing" not in tensor


def test_python(tmp_path):
    a, b = files(tmp_path)
    found = halfscope.compare(a, b, sums=SUMS)
    assert found.sums.by_tensor[0].verdict == "within"
    with pytest.raises(ValueError, match="expected length=K,format=F"):
        halfscope.compare(a, b, sums="length=8")


@pytest.mark.parametrize("text", ["", "length=0,format=fp16", "length=8,format=e4m3", "length=8",
                                  "format=fp16,length=8", "length=8,format=fp16,magnitudes="])
def test_what_is_no_sum(text, tmp_path):
    paths = files(tmp_path)
    if text:
        assert "--sums: found" in run("compare", *paths, "--sums", text, expect=2)[1]
    assert "has no tensor 'x' with as many elements" in run(
        "compare", *paths, "--sums", SUMS + ",magnitudes=x", expect=1)[1]


def test_magnitudes_that_cannot_be(tmp_path):
    """Sums of magnitudes that overflowed, or are less than a sum itself, count as missing."""
    a, b = files(tmp_path, fault=1000)
    for magnitude in (np.inf, -1000, 1):
        with safe_open(a, "numpy") as opened:
            save_file({"weight_grad/w": opened.get_tensor("weight_grad/w"),
                       "weight_grad/m": np.full(200, magnitude, np.float16)}, tmp_path / "m.safetensors")
        paths = (tmp_path / "m.safetensors", b)
        assert judged(paths, SUMS + ",magnitudes=weight_grad/m")["verdict"] == "cannot tell"
        assert "and count as missing" in run("compare", *paths, "--sums", SUMS + ",magnitudes=weight_grad/m")[0]


def test_fp32_sums_that_were_stored_in_fp16(tmp_path):
    rng = np.random.default_rng(3)
    addends = rng.uniform(0, 1, (16, 20000)).astype(np.float32)
    results = [summed(addends, rng.permutation(16)) for _ in range(2)]
    magnitudes = np.abs(addends.astype(np.float64)).sum(0).astype(np.float32)
    for name, result in zip("ab", results):
        save_file({"weight_grad/w": result.astype(np.float16), "weight_grad/m": magnitudes},
                  tmp_path / f"{name}.safetensors")
    found = halfscope.compare(tmp_path / "a.safetensors", tmp_path / "b.safetensors",
                              sums="length=16,format=fp32,magnitudes=weight_grad/m").sums
    (tensor,) = [t for t in found["by_tensor"] if t["name"] == "weight_grad/w"]
    assert tensor["verdict"] == "within" and tensor["elements"] == 20000


def test_loss_scales_that_differ(tmp_path):
    """Values are brought to one scale where that is exact, and refused where it is not."""
    paths = files(tmp_path, magnitudes=True)
    runs = []
    for name, path, scale in zip("abc", (paths[0], paths[1], paths[1]), (16, 8, 12)):
        with safe_open(path, "numpy") as opened:
            tensors = {key: (opened.get_tensor(key).astype(np.float32) * scale) for key in opened.keys()}
        runs.append(write_rank(tmp_path / f"run-{name}", tensors, scale=scale))
    sums = f"length={LENGTH},format=fp16,magnitudes=weight_grad/magnitudes"
    tensor = next(t for t in halfscope.compare(*runs[:2], sums=sums).sums["by_tensor"]
                  if t["name"] == "weight_grad/w")
    assert tensor["verdict"] == "within"
    err = run("compare", runs[0], runs[2], "--sums", sums, expect=1)[1]
    assert "carries the loss scale 16 in A and 12 in B" in err and "record both at the same scale" in err


def test_what_is_infinite_in_one_alone_is_told(tmp_path):
    paths = files(tmp_path, fault=np.inf)
    said = words_of("compare", *paths, "--sums", SUMS)
    assert "Elements of weight_grad/w are infinite or NaN in one log alone" in said


def test_long_sums_in_fp16(tmp_path):
    """4,096 addends in FP16 lose additions as a rule: another order is rounding, a missing half is not."""
    rng = np.random.default_rng(4)
    addends = rng.standard_normal((4096, 100)).astype(np.float16)
    magnitudes = np.abs(addends.astype(np.float32)).sum(0)
    for name, order in {"a": range(4096), "order": rng.permutation(4096), "half": range(2048)}.items():
        save_file({"weight_grad/w": summed(addends, order), "weight_grad/m": magnitudes},
                  tmp_path / f"{name}.safetensors")
    sums = "length=4096,format=fp16,magnitudes=weight_grad/m"
    how = {"sums": sums, "recorded_scale": 1, "tensor": "*/w"}
    same, half = (halfscope.compare(tmp_path / "a.safetensors", tmp_path / f"{b}.safetensors", **how)
                  for b in ("order", "half"))
    assert same.sums["by_tensor"][0]["verdict"] == "within"
    assert str(same).startswith("The sums differ by rounding alone.")
    assert half.sums["by_tensor"][0]["verdict"] == "cannot tell"
    assert str(half).startswith("Most likely a bug: random orders do not give the differences in 1 of 1 tensor.")
    said = words_of("compare", tmp_path / "a.safetensors", tmp_path / "half.safetensors", "--sums",
                    sums)
    assert "than those that random orders exceed once in 10^6 pairs: a bug, unless a few addends" in said


def test_a_gate_on_sums(tmp_path):
    paths = files(tmp_path, fault=1000, magnitudes=True)
    sums = ("--sums", SUMS + ",magnitudes=weight_grad/magnitudes")
    run("compare", *paths, *sums, "--fail-if", "sums_above > 0", expect=4)
    run("compare", *paths, *sums, "--fail-if", "sums_above > 1%", expect=0)
    run("compare", *paths, "--fail-if", "sums_above > 0", expect=2)
    out = run("compare", *paths, *sums)[0]
    assert "A bug, or other addends: no order of addition explains 1 of" in out
