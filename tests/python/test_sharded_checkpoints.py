# SPDX-License-Identifier: Apache-2.0
"""Checkpoints as Hugging Face's libraries and torch.save leave them, through the program."""
import json
import pathlib
import subprocess

import numpy as np
import pytest
import safetensors.numpy
import torch

from program import PROGRAM


COUNTS = ("total", "zero", "shape", "source_dtype", "max_abs")


def run(*arguments):
    return subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True)


def analyze(*arguments):
    done = run("analyze", *arguments, "--json", "-")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), done.stderr


def tensors(found):
    return {tensor["name"]: tensor for tensor in found["tensors"]}


def named(layers=4):
    rng = np.random.default_rng(4)
    names = ["model.embed_tokens.weight", "lm_head.weight"]
    for layer in range(layers):
        names += [f"model.layers.{layer}.self_attn.q_proj.weight",
                  f"model.layers.{layer}.input_layernorm.weight"]
    return {name: rng.standard_normal((8, 4)).astype(np.float16) for name in names}


def save(folder, weights, shards=3, torch_format=False):
    """As save_pretrained does: shards, and an index of them."""
    folder.mkdir(exist_ok=True)
    stem, end = ("pytorch_model", "bin") if torch_format else ("model", "safetensors")
    weight_map = {}
    for shard in range(shards):
        file = f"{stem}-{shard + 1:05}-of-{shards:05}.{end}"
        part = dict(list(weights.items())[shard::shards])
        if torch_format:
            torch.save({name: torch.from_numpy(value) for name, value in part.items()},
                       folder / file)
        else:
            safetensors.numpy.save_file(part, folder / file, metadata={"format": "pt"})
        weight_map |= dict.fromkeys(part, file)
    index = folder / f"{stem}.{end}.index.json"
    total = sum(value.nbytes for value in weights.values())
    index.write_text(json.dumps({"metadata": {"total_size": total}, "weight_map": weight_map}))
    return index


@pytest.mark.parametrize("torch_format", [False, True])
def test_a_sharded_checkpoint_is_the_whole_one(tmp_path, torch_format):
    weights = named()
    index = save(tmp_path / "shards", weights, torch_format=torch_format)
    safetensors.numpy.save_file(weights, tmp_path / "whole.safetensors")
    whole = tensors(analyze(tmp_path / "whole.safetensors")[0])
    assert whole.keys() == weights.keys()
    for log in (index, index.parent):
        found, said = analyze(log)
        parts = tensors(found)
        assert parts.keys() == whole.keys()
        for name, part in parts.items():
            assert {key: part[key] for key in COUNTS} == {key: whole[name][key] for key in COUNTS}
        assert "skipped" not in said and "total_size" not in said and "tensors take" not in said
        for threads in (1, 2, 4):
            assert analyze(log, "--threads", threads)[0] == found


def test_roles_of_real_names(tmp_path):
    index = save(tmp_path / "m", named())
    found, said = analyze(index)
    assert {t["role_source"] for t in found["tensors"]} == {"file"}
    assert {t["role"] for t in found["tensors"]} == {"weight"} and "'*=weight_grad'" in said
    found, said = analyze(index, "--role", "*=weight")
    assert {t["role"] for t in found["tensors"]} == {"weight"} and "--role" not in said
    found, _ = analyze(index, "--role", "*layernorm*=activation", "--role", "model.layers.*=weight")
    for name, tensor in tensors(found).items():
        wanted = ("activation" if "layernorm" in name else
                  "weight" if name.startswith("model.layers.") else "unknown")
        assert tensor["role"] == wanted


def test_checkpoint_folder_with_optimizer(tmp_path):
    """checkpoint-500 as a trainer leaves it: sharded weights, an optimizer's state, other files."""
    folder = tmp_path / "checkpoint-500"
    save(folder, named(1))
    torch.save({"state": {0: {"exp_avg": torch.ones(3)}}}, folder / "optimizer.pt")
    found, said = analyze(tmp_path)
    assert tensors(found).keys() == named(1).keys()
    assert "optimizer.pt: is named by no index" in said
    found, said = analyze(folder / "optimizer.pt")
    assert [(t["name"], t["role"]) for t in found["tensors"]] == [
        ("state.0.exp_avg", "optimizer_state")]


def test_one_checkpoint_in_two_formats(tmp_path):
    weights = named(1)
    safetensors.numpy.save_file(weights, tmp_path / "model.safetensors")
    torch.save({n: torch.from_numpy(v) for n, v in weights.items()}, tmp_path / "model.bin")
    found, said = analyze(tmp_path)
    assert all(t["total"] == 32 for t in found["tensors"])
    assert "model.bin: holds tensors that safetensors or NumPy files of its step also hold" in said


def test_dumps_of_transformer_engine(tmp_path):
    """A tensor and an object in each file; the file's name is the tensor's."""
    for step in (2, 4):
        folder = tmp_path / f"iter_{step:06}"
        folder.mkdir()
        for name in ("layer1_gradient", "layer2_gradient"):
            torch.save({"high_precision": torch.full((4,), float(step)),
                        "quantized": pathlib.PurePosixPath("x")}, folder / f"{name}.pt")
    found, said = analyze(tmp_path)
    assert tensors(found).keys() == {"layer1_gradient", "layer2_gradient"}
    assert all([row["step"] for row in t["per_step"]] == [2, 4] for t in found["tensors"])
    assert "PurePosixPath" in said


def test_as_bf16(tmp_path):
    values = np.array([1, 2**-30, 0, 3], np.float32)
    np.save(tmp_path / "w.npy", (values.view(np.uint32) >> 16).astype(np.uint16).view("V2"))
    done = run("analyze", tmp_path / "w.npy")
    assert done.returncode == 1 and "--as bf16" in done.stderr
    found, _ = analyze(tmp_path / "w.npy", "--as", "bf16")
    (tensor,) = found["tensors"]
    assert (tensor["total"], tensor["zero"], tensor["source_dtype"]) == (4, 1, "BF16")
    assert run("analyze", tmp_path, "--as", "bf16").returncode == 0
    assert run("recommend", tmp_path / "w.npy", "--as", "bf16").returncode == 0
    for same in ("bfloat16", "BF16"):
        assert analyze(tmp_path / "w.npy", "--as", same)[0]["tensors"] == found["tensors"]
    for other in ("f16", "float16", "fp16"):
        (tensor,) = analyze(tmp_path / "w.npy", "--as", other)[0]["tensors"]
        assert tensor["source_dtype"] == "F16"
    for wrong in ("f32", "bf", ""):
        assert run("analyze", tmp_path / "w.npy", "--as", wrong).returncode == 2
