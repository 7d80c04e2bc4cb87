# SPDX-License-Identifier: Apache-2.0
"""`halfscope compare --sums`: results of one sum in other orders, and results with a fault."""
import json

import jsonschema
import numpy as np
import pytest
from safetensors.numpy import save_file

import halfscope
from log_inputs import ROOT, run

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
    found = json.loads(run("compare", *paths, "--sums", sums, "--json", "-")[0])
    jsonschema.validate(found, json.loads((ROOT / "docs/schema/compare.schema.json").read_text()))
    assert found["sums"]["length"] == LENGTH and found["sums"]["format"] == "binary16"
    (tensor,) = [t for t in found["sums"]["by_tensor"] if t["name"] == "weight_grad/w"]
    assert tensor["within"] + tensor["between"] + tensor["above"] == tensor["elements"] == 200
    return tensor


def test_other_orders_are_rounding(tmp_path):
    paths = files(tmp_path)
    tensor = judged(paths)
    assert tensor["verdict"] == "within" and 0 < tensor["worst_ratio"] <= 1
    said = " ".join(run("compare", *paths, "--sums", SUMS)[0].split())
    assert "Sums of 1,024 addends in FP16: rounding or a bug" in said
    assert "Rounding, since random orders give differences as large: weight_grad/w." in said
    run("compare", *paths, "--sums", SUMS, "--out", tmp_path / "page.html")
    assert 'id="sums"' in (tmp_path / "page.html").read_text()


def test_a_fault_is_above_every_order(tmp_path):
    paths = files(tmp_path, fault=1000, magnitudes=True)
    tensor = judged(paths, SUMS + ",magnitudes=weight_grad/magnitudes")
    assert (tensor["verdict"], tensor["above"], tensor["worst"]) == ("above", 1, 7)
    assert "gives so large a difference: weight_grad/w." in " ".join(run(
        "compare", *paths, "--sums", SUMS + ",magnitudes=weight_grad/magnitudes")[0].split())


def test_values_that_cancel_need_their_magnitudes(tmp_path):
    paths = files(tmp_path, cancel=True, magnitudes=True)
    tensor = judged(paths)
    assert tensor["verdict"] == "cannot tell" and tensor["magnitudes_missing"]
    assert "give it with magnitudes=TENSOR" in " ".join(
        run("compare", *paths, "--sums", SUMS)[0].split())
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
