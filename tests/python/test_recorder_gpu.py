# SPDX-License-Identifier: Apache-2.0
"""The recorder where it is used: FP16 autocast and PyTorch's own GradScaler on a GPU."""

import json
import math

import pytest

torch = pytest.importorskip("torch")

from small_runs import half_ulp  # noqa: E402

import halfscope  # noqa: E402
from halfscope import _halfscope  # noqa: E402
from halfscope.torch import Recorder, emulate, gpu, tensors  # noqa: E402
from halfscope.torch.tensors import gather_each, largest_of, largest_of_each  # noqa: E402

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")


def network():
    torch.manual_seed(3)
    return torch.nn.Sequential(torch.nn.Conv2d(1, 8, 3), torch.nn.BatchNorm2d(8), torch.nn.ReLU(),
                               torch.nn.Flatten(), torch.nn.Linear(8 * 36, 5)).cuda()


def scaler_of(scale):
    if hasattr(torch.amp, "GradScaler"):
        return torch.amp.GradScaler("cuda", init_scale=scale)
    return torch.cuda.amp.GradScaler(init_scale=scale)


def train(model, optimizer, scaler, steps, clip=None):
    """[whether the weights moved] of each step"""
    moved = []
    targets = torch.arange(7, device="cuda") % 5
    for step in range(steps):
        inputs = torch.randn(7, 1, 8, 8, device="cuda")
        optimizer.zero_grad()
        with torch.autocast("cuda", torch.float16):
            loss = torch.nn.functional.cross_entropy(model(inputs), targets)
        scaler.scale(loss).backward()
        if clip:
            scaler.unscale_(optimizer)
            torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
        before = model[0].weight.detach().clone()
        scaler.step(optimizer)
        scaler.update()
        moved.append(not torch.equal(before, model[0].weight))
    return moved


OPTIMIZERS = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.01, momentum=0.9),
    "adam": lambda p: torch.optim.Adam(p, lr=0.001),
    "adam, one by one": lambda p: torch.optim.Adam(p, lr=0.001, foreach=False),
    "adamw": lambda p: torch.optim.AdamW(p, lr=0.001),
    "fused": lambda p: torch.optim.Adam(p, lr=0.001, fused=True),
    "capturable": lambda p: torch.optim.Adam(p, lr=0.001, capturable=True),
}


@pytest.mark.parametrize("kind", OPTIMIZERS)
def test_steps_that_the_scaler_skips(tmp_path, read_log, kind):
    model, scaler = network(), scaler_of(2.0**40)
    optimizer = OPTIMIZERS[kind](model.parameters())
    with Recorder(model, optimizer, tmp_path / "run", scaler=scaler):
        moved = train(model, optimizer, scaler, 40)
    log = read_log(tmp_path / "run")
    assert [not log.scalars[step]["found_inf"] for step in range(40)] == moved
    assert not moved[0] and moved[-1]
    assert log.scalars[0]["loss_scale"] == 2.0**40
    assert log.tables["weight_grad/0.weight", 39]["computed_dtype"] == "F16"
    assert log.tables["activation_grad/0", 39]["source_dtype"] == "F16"


@pytest.mark.parametrize("kind", ["sgd", "adam", "adam, one by one", "adamw"])
def test_updates_are_those_of_the_optimizer(tmp_path, read_log, kind):
    """To the bit where the weight was zero, as the bias of batch normalization is at first."""
    model, scaler = network(), scaler_of(1024.0)
    optimizer = OPTIMIZERS[kind](model.parameters())
    with Recorder(model, optimizer, tmp_path / "run", scaler=scaler, sample_every=2):
        train(model, optimizer, scaler, 3)
    for step in (0, 2):
        tensors, _ = read_log(tmp_path / "run").sample(step)
        for name in ("0.weight", "1.bias", "4.weight"):
            before, after = tensors[f"weight/{name}"], tensors[f"weight_after/{name}"]
            update = tensors[f"update/{name}"]
            error = (before.double() + update.double() - after.double()).abs()
            # The sum is rounded, AdamW's decayed weight too, and the update's own terms.
            bound = 2 * torch.maximum(half_ulp(before), half_ulp(after)) + 4 * half_ulp(update)
            assert (error <= bound).all(), name
            assert step or name != "1.bias" or torch.equal(update, after)


def test_unscaled_and_clipped_gradients_were_read_before(tmp_path, read_log):
    model, scaler = network(), scaler_of(1024.0)
    optimizer = OPTIMIZERS["sgd"](model.parameters())
    with Recorder(model, optimizer, tmp_path / "run", scaler=scaler):
        train(model, optimizer, scaler, 2, clip=0.1)
    log = read_log(tmp_path / "run")
    assert log.tables["weight_grad/0.weight", 1]["scale"] == 1024.0
    assert log.tables["activation_grad/0", 1]["scale"] == 1024.0
    assert halfscope.recommend(tmp_path / "run")["static_scale"]


@pytest.mark.skipif(tuple(map(int, torch.__version__.split(".")[:2])) < (2, 9), reason="older PyTorch")
def test_tf32_may_be_set_in_the_newer_way(tmp_path):
    model, old = network(), torch.backends.cuda.matmul.fp32_precision
    torch.backends.cuda.matmul.fp32_precision = "tf32"
    try:
        with Recorder(model, OPTIMIZERS["sgd"](model.parameters()), tmp_path / "run"):
            pass
    finally:
        torch.backends.cuda.matmul.fp32_precision = old
    assert json.loads((tmp_path / "run/run.json").read_text())["tf32"]["matmul"] is True


def test_emulation_runs_on_a_gpu(tmp_path, read_log):
    model = network()
    optimizer = OPTIMIZERS["sgd"](model.parameters())
    targets = torch.arange(7, device="cuda") % 5
    with emulate(model, optimizer, precision="mixed", loss_scale="torch", log=tmp_path / "run") as run:
        for _ in range(3):
            optimizer.zero_grad()
            outputs = model(torch.randn(7, 1, 8, 8, device="cuda"))
            run.backward(torch.nn.functional.cross_entropy(outputs, targets))
            optimizer.step()
    assert read_log(tmp_path / "run").tables["weight_grad/0.weight", 2]["source_dtype"] == "F16"


def values_of_all_kinds(dtype, count):
    values = torch.randn(count, generator=torch.Generator().manual_seed(count)) * 2.0**-12
    values[::7] *= 2.0**-10
    values[::11] = 0.0
    values[5::97] = float("inf")
    values[6::101] = float("-inf")
    values[7::103] = float("nan")
    values[8::107] = -0.0
    return values.to(dtype)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_tables_of_the_gpu_are_those_of_the_cpu(tmp_path, read_log, dtype):
    writer = _halfscope.RunLogWriter(str(tmp_path / "run"), json.dumps(
        {"scaled": False, "rank": 0, "world_size": 1, "sharded": [], "about": {}}))
    written, sizes = [], [0, 1, 3, 1000, (1 << 17) + 3]
    for on_gpu in (False, True):
        gathered = [_halfscope.Gathered() for _ in sizes]
        pieces = [(one, values_of_all_kinds(dtype, count), None)
                  for one, count in zip(gathered, sizes)]
        if on_gpu:
            pieces = [(one, tensor.cuda(), None) for one, tensor, _ in pieces]
        magnitudes = gather_each(pieces)
        (again,) = gather_each(pieces[-1:])  # a second piece of the last one
        assert largest_of([magnitudes[1]]) == largest_of([tensors.largest(pieces[1][1])])
        assert math.isnan(largest_of([again]))
        written += [(f"weight/{on_gpu}-{size}", one, False, 1.0)
                    for one, size in zip(gathered, sizes)]
    writer.write_tensors(0, written)
    tables = read_log(tmp_path / "run").tables
    for size in sizes:
        cpu, gpu = (dict(tables[f"weight/{on_gpu}-{size}", 0]) for on_gpu in (False, True))
        for sums in ("mean", "sum_squares"):
            assert gpu.pop(sums, 0) == pytest.approx(cpu.pop(sums, 0), rel=1e-9, nan_ok=True)
        assert {**gpu, "name": ""} == {**cpu, "name": ""}, size


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_the_largest_of_many_tensors_is_that_of_each(dtype):
    each = [torch.randn(n, device="cuda").to(dtype) for n in (1, 7, 100_003)]
    for last in (2.0**12, float("inf"), float("nan")):
        each[2][50_001] = last
        most = largest_of(tensors.copied_to_host(largest_of_each(each)))
        assert most == last or (math.isnan(most) and math.isnan(last))


def test_statistics_are_counted_where_tensors_are():
    assert gpu.is_counted_on(0), "built without CUDA, or the driver is too old"
