# SPDX-License-Identifier: Apache-2.0
"""Writes the logs of the golden record: intact and damaged logs of every reader, and runs with each
kind of numeric failure."""

import json
import pathlib
import shutil
import sys

import numpy as np
import torch
from safetensors.numpy import save_file

from halfscope import _halfscope

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/fuzz"))
from seeds import tensors, texts  # noqa: E402

NAN, INF = float("nan"), float("inf")
LAYERS = {"conv1": (8, 1, 3, 3), "conv2": (16, 8, 3, 3), "fc": (10, 144)}


def draw(seed, shape, middle, deviation=4):
    """Returns values of both signs whose binades are around 2^middle; a few are zero.

    Drawn as integers, so that the values are the same on every machine.
    """
    random = np.random.default_rng(seed)
    coins = random.integers(0, 2, (4 * deviation**2, *shape)).sum(axis=0) - 2 * deviation**2
    significands = random.integers(2**23, 2**24, shape) * random.choice([-1, 1], shape)
    values = np.ldexp(significands.astype(np.float32), middle - 23 + coins)
    values.flat[::50] = 0
    return values


class Run:
    """Writes a run log step by step. scaled: True if recorded gradients carry a loss scale."""

    def __init__(self, folder, scaled=False, rank=0, world_size=1, sharded=(), **about):
        manifest = {"scaled": scaled, "rank": rank, "world_size": world_size,
                    "sharded": list(sharded), "about": about}
        self._scaled = scaled
        self._writer = _halfscope.RunLogWriter(str(folder), json.dumps(manifest))

    def step(self, step, values, scale=1.0, sample=False, computed=None, **scalars):
        """Writes a step. values: {name: float32 array}; scale: that of the gradients."""
        for name, array in values.items():
            table, mean, sum_squares, _ = _halfscope.measure(array)
            is_gradient = name.split("/")[0].endswith("grad")
            scaled = self._scaled and is_gradient
            self._writer.write_tensors(step, [(
                name, _halfscope.Gathered.of(table, "F32", array.shape, mean, sum_squares, computed),
                scaled, scale if scaled else 1.0)])
        if sample:
            metadata = {"scale": str(scale)} if self._scaled else {}
            self._writer.write_sample(step, [(n, a, None) for n, a in values.items()], metadata)
        told = {"loss": 2.0 / (1 + step), "learning_rate": 0.1, "loss_scale": None,
                "found_inf": None, "max_abs_weight_grad": None, "max_abs_activation_grad": None,
                "more": {}}
        self._writer.write_scalars(step=step, **{**told, **scalars})


def gradients(step, middle=-18):
    """Returns the tensors that one step of a small network records."""
    values = {}
    for number, (layer, shape) in enumerate(LAYERS.items()):
        seed = 100 * step + 10 * number
        values[f"weight/{layer}.weight"] = draw(number, shape, -4, 1)
        values[f"weight_grad/{layer}.weight"] = draw(seed + 1, shape, middle)
        values[f"activation_grad/{layer}"] = draw(seed + 2, (32, 50), middle - 3)
        values[f"activation/{layer}"] = np.abs(draw(seed + 3, (32, 50), 0, 2))
    return values


def spoil(values, name, what, count=1):
    values[name].flat[:count] = what
    return values


def largest(values, role):
    return max(float(np.abs(v).max()) for n, v in values.items() if n.startswith(role + "/"))


def clean_runs(folder):
    run = Run(folder / "clean")
    for step in range(12):
        run.step(step, gradients(step), sample=step % 5 == 0)
    run = Run(folder / "gaps")
    for step in (0, 1, 2, 10, 20, 21, 50):
        run.step(step, gradients(step))
    run = Run(folder / "large")
    for step in range(6):
        run.step(step, gradients(step, 6), sample=step == 3)
    run = Run(folder / "bfloat16", precision="bf16")
    for step in range(6):
        run.step(step, gradients(step, -30), computed="BF16")
    run = Run(folder / "half-precision", precision="fp16")
    for step in range(6):
        half = {n: v.astype(np.float16).astype(np.float32) for n, v in gradients(step).items()}
        run.step(step, half, computed="F16")


def broken_runs(folder):
    run = Run(folder / "nan-lasting")
    for step in range(10):
        values = gradients(step)
        if step >= 6:
            spoil(values, "activation/conv2", NAN, 7)
            spoil(values, "activation_grad/conv2", NAN, 9)
            spoil(values, "weight_grad/conv2.weight", NAN, 30)
        run.step(step, values, loss=NAN if step >= 6 else 1.0)
    run = Run(folder / "infinity-once")
    for step in range(10):
        values = gradients(step)
        run.step(step, spoil(values, "weight_grad/fc.weight", INF, 3) if step == 4 else values)
    run = Run(folder / "infinity-in-activation")
    for step in range(10):
        values = gradients(step)
        if step == 7:
            spoil(spoil(values, "activation/conv1", INF), "activation/conv2", NAN)
        run.step(step, values)


def scaled_run(folder, name, first_scale, **about):
    """Writes a run whose gradients carry the loss scale, which is halved after every overflow."""
    run, scale = Run(folder / name, scaled=True, **about), first_scale
    for step in range(14):
        values = gradients(step)
        for key in values:
            if key.split("/")[0].endswith("grad"):
                values[key] = (values[key] * np.float32(scale)).astype(np.float16).astype(np.float32)
        overflow = any(np.isinf(v).any() for v in values.values())
        run.step(step, values, scale, computed="F16", loss_scale=scale, found_inf=overflow,
                 sample=step % 6 == 0,
                 max_abs_weight_grad=largest(values, "weight_grad") / scale,
                 max_abs_activation_grad=largest(values, "activation_grad") / scale)
        scale = scale / 2 if overflow else scale


def scaled_runs(folder):
    with np.errstate(over="ignore"):
        scaled_run(folder, "scaled", 2.0**16)
        scaled_run(folder, "scaled-far-too-much", 2.0**30)
        scaled_run(folder, "scaled-by-torch", 2.0**24,
                   loss_scaling={"policy": "torch", "init_scale": 2.0**24, "growth_interval": 2000})
    run = Run(folder / "clipped", weight_grad="after clipping")
    for step in range(12):
        values = gradients(step)
        norm = np.sqrt(sum(float((v.astype(np.float64) ** 2).sum()) for n, v in values.items()
                           if n.startswith("weight_grad")))
        run.step(step, {n: v / np.float32(norm) if n.startswith("weight_grad") else v
                        for n, v in values.items()})


def other_runs(folder):
    for rank in range(2):
        run = Run(folder / "ranks" / f"rank-{rank:04d}", rank=rank, world_size=2,
                  sharded=["activation", "activation_grad"])
        for step in range(6):
            values = gradients(step)
            values.update({n: draw(9999 * (rank + 1) + step, v.shape, -20)
                           for n, v in values.items() if n.startswith("activation_grad")})
            run.step(step, values)
    run = Run(folder / "updates", optimizer={
        "class": "torch.optim.SGD", "param_groups": [{
            "lr": 0.01, "momentum": 0.0, "params": [f"{layer}.weight" for layer in LAYERS]}]})
    for step in range(4):
        run.step(step, gradients(step, -8), sample=True)
    run = Run(folder / "scalars-alone")
    for step in range(30):
        run.step(step, {}, loss_scale=2.0**16 if step < 20 else 2.0**15, found_inf=step == 19,
                 max_abs_weight_grad=INF if step == 19 else 0.5, max_abs_activation_grad=0.25)
    tensorboard = folder / "run-log-as-tensorboard"  # the files of a run log that TensorBoard reads
    shutil.copytree(folder / "clean", tensorboard)
    (tensorboard / "run.json").unlink()


def tensor_files(folder):
    values = gradients(0)
    save_file(values, folder / "one.safetensors")
    save_file({n.split("/")[1]: v for n, v in values.items() if n.startswith("weight/")},
              folder / "weights.safetensors")
    half = {n: v.astype(np.float16) for n, v in values.items() if "grad" in n}
    np.savez_compressed(folder / "half.npz", **{n.replace("/", "."): v for n, v in half.items()})
    np.save(folder / "gradient.npy", draw(7, (100, 30), -20))
    torch.save({"state_dict": {n: torch.from_numpy(v) for n, v in values.items()}},
               folder / "state.pt")
    torch.save({n: torch.from_numpy(v).bfloat16() for n, v in values.items() if "grad" in n},
               folder / "bfloat16.pt")
    steps = folder / "folder-of-steps"
    steps.mkdir()
    for step in range(5):
        save_file({n: v for n, v in gradients(step).items() if "grad" in n},
                  steps / f"step-{step:06d}.safetensors")
    shards = folder / "folder-of-shards"
    shards.mkdir()
    names = sorted(values)
    for shard in range(3):
        save_file({n: values[n] for n in names[shard::3]},
                  shards / f"model-{shard + 1:05d}-of-00003.safetensors")


def of_the_tests(folder):
    """Copies logs from the tests, and writes the seeds of the readers' fuzz targets."""
    shutil.copytree(ROOT / "data/digits-cnn/log", folder / "digits")
    for kind in ("console", "tensorboard", "wandb"):
        shutil.copytree(ROOT / "tests/data" / kind, folder / kind,
                        ignore=shutil.ignore_patterns("*.json", "*.py"))
    for target, name, data in texts.seeds():
        if target in ("any_log", "console"):
            continue
        place = folder / f"seed-{target}-{name}"
        place.mkdir()
        for file in data.split(b"\x1e"):
            file_name, _, contents = file.partition(b"\n")
            file = place / file_name.decode()
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(contents)
    for target, name, data in tensors.seeds():
        if target in ("safetensors", "npy"):
            (folder / f"seed-{name}.{target}").write_bytes(data)


def write_all(folder):
    for write in (clean_runs, broken_runs, scaled_runs, other_runs, tensor_files, of_the_tests):
        write(folder)


def single_logs(folder):
    """Yields the path of each log, relative to the folder."""
    apart = {"console", "tensorboard", "wandb"}
    for path in sorted(folder.iterdir()):
        if path.name in apart:
            yield from (p.relative_to(folder) for p in sorted(path.iterdir()))
        else:
            yield path.relative_to(folder)
