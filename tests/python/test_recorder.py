# SPDX-License-Identifier: Apache-2.0
"""The recorder against a twin: the same model trained beside it, looked at by hand."""

import copy
import inspect
import json
import re
import warnings

import numpy as np
import pytest
import torch
from small_runs import batch, loss_of, small_network, train, twin_step
from torch import nn

import halfscope
from halfscope.torch import Recorder


def test_tables_samples_and_scalars_are_the_twins(tmp_path, read_log):
    model = small_network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    twin = copy.deepcopy(model)
    twin_optimizer = torch.optim.SGD(twin.parameters(), lr=0.1)
    with Recorder(model, optimizer, tmp_path / "run", every=2, sample_every=[3]) as recorder:
        train(model, optimizer, recorder, 5)
    log = read_log(tmp_path / "run")

    assert sorted(log.scalars) == [0, 1, 2, 3, 4]
    assert sorted({step for _, step in log.tables}) == [0, 2, 3, 4]
    assert sorted(log.sample_files) == [3]
    for step in range(5):
        loss, seen = twin_step(twin, twin_optimizer, step)
        scalars = log.scalars[step]
        assert scalars["loss"] == loss
        assert (scalars["learning_rate"], scalars["loss_scale"], scalars["found_inf"]) == (0.1, 1.0,
                                                                                          False)
        for role in ("weight_grad", "activation_grad"):
            largest = max(t.abs().max().item() for name, t in seen.items() if name.startswith(role + "/"))
            assert scalars[f"max_abs_{role}"] == largest
        if step == 1:
            continue
        for name, tensor in seen.items():
            if name.startswith("weight_after/"):
                continue
            record = log.tables[name, step]
            assert record["table"] == halfscope.binade_table(tensor.contiguous()), name
            assert record["shape"] == tuple(tensor.shape)
            assert (record["source_dtype"], record["scaled"], record["scale"]) == ("F32", False, 1.0)
            assert record["mean"] == pytest.approx(tensor.double().mean().item(), abs=1e-12)
            assert record["sum_squares"] == pytest.approx(tensor.double().square().sum().item())
        if step == 3:
            sample, _ = log.sample(3)
            for name, tensor in seen.items():
                assert torch.equal(sample[name], tensor), name
    roles = {name.partition("/")[0] for name in log.names(4)}
    assert roles == {"weight", "weight_grad", "activation", "activation_grad", "update"}


def test_the_log_is_analyzed(tmp_path):
    model = small_network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with Recorder(model, optimizer, tmp_path / "run") as recorder:
        train(model, optimizer, recorder, 3)
    tensors = {t["name"]: t for t in halfscope.analyze(tmp_path / "run")["tensors"]}
    assert tensors["weight_grad/3.weight"]["steps"] == [0, 1, 2]
    assert tensors["activation/0"]["total"] == 3 * 7 * 4 * 6 * 6
    assert halfscope.recommend(tmp_path / "run")["static_scale"] >= 1


def test_recording_changes_nothing(tmp_path):
    model, twin = small_network(), small_network()
    optimizer = torch.optim.Adam(model.parameters())
    with Recorder(model, optimizer, tmp_path / "run", sample_every=1) as recorder:
        train(model, optimizer, recorder, 3)
    twin_optimizer = torch.optim.Adam(twin.parameters())
    for step in range(3):
        twin_step(twin, twin_optimizer, step)
    for mine, plain in zip(model.parameters(), twin.parameters()):
        assert torch.equal(mine, plain)
    mine, plain = optimizer.state_dict()["state"], twin_optimizer.state_dict()["state"]
    assert mine.keys() == plain.keys()
    assert all(torch.equal(mine[i][k], plain[i][k]) for i in plain for k in plain[i])


def is_as_it_was(model, optimizer):
    hooks = [m for m in model.modules() if m._forward_hooks or m._forward_pre_hooks]
    return not hooks and not any(p._backward_hooks for p in model.parameters()) and (
        "step" not in vars(optimizer))


@pytest.mark.parametrize("where", ["in the loop", "in the step", "in the model"])
def test_an_exception_puts_everything_back(tmp_path, read_log, where):
    model = small_network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    plain_step = optimizer.step
    with pytest.raises(ZeroDivisionError):
        with Recorder(model, optimizer, tmp_path / "run") as recorder:
            train(model, optimizer, recorder, 2)
            assert not is_as_it_was(model, optimizer)
            assert inspect.signature(optimizer.step) == inspect.signature(plain_step)
            if where == "in the step":
                optimizer.param_groups[0]["weight_decay"] = "much"
                with pytest.raises(TypeError):
                    train(model, optimizer, recorder, 1)
            if where == "in the model":
                model.append(nn.Module())
                with pytest.raises(NotImplementedError):
                    train(model, optimizer, recorder, 1)
            raise ZeroDivisionError
    assert is_as_it_was(model, optimizer)
    assert optimizer.step == plain_step
    assert sorted(read_log(tmp_path / "run").scalars) == [0, 1]


def test_start_and_stop_without_a_context(tmp_path, read_log):
    model = small_network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    recorder = Recorder(model, optimizer, tmp_path / "run", every=lambda step: step == 1).start()
    train(model, optimizer, recorder, 2)
    recorder.stop()
    recorder.stop()
    assert is_as_it_was(model, optimizer)
    assert {step for _, step in read_log(tmp_path / "run").tables} == {1}
    with pytest.raises(RuntimeError, match="started already"):
        recorder.start()
    with pytest.raises(halfscope.BadInput, match="holds a run log already"):
        Recorder(model, optimizer, tmp_path / "run").start()
    assert is_as_it_was(model, optimizer)


def test_a_folder_that_cannot_be_made(tmp_path):
    model = small_network()
    (tmp_path / "file").write_text("in the way")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with pytest.raises(halfscope.BadInput, match="file/run"):
        Recorder(model, optimizer, tmp_path / "file" / "run", on_error="raise").start()
    with pytest.warns(RuntimeWarning, match="training goes on: BadInput: .*file/run"):
        with Recorder(model, optimizer, tmp_path / "file" / "run") as recorder:
            train(model, optimizer, recorder, 2)
    assert is_as_it_was(model, optimizer)


@pytest.mark.parametrize("every, told", [
    (np.int64(2), 2), (np.arange(0, 4, 2), [0, 2]), (torch.tensor([2, 0]), [0, 2]),
    ((step for step in (0, 2)), [0, 2])])
def test_steps_may_be_numbers_of_other_packages(tmp_path, read_log, every, told):
    model = small_network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with Recorder(model, optimizer, tmp_path / "run", every=every, first_step=np.int64(0),
                  clipping=torch.tensor(1.0)) as recorder:
        train(model, optimizer, recorder, 4)
    assert {step for _, step in read_log(tmp_path / "run").tables} == {0, 2}
    settings = json.loads((tmp_path / "run/run.json").read_text())["recorder"]
    assert settings["every"] == told and settings["magnitudes_every"] == 1
    assert settings["first_step"] == 0 and settings["clipping"] == 1.0


@pytest.mark.parametrize("every", [0, -1, "10", 2.5, True, [0, "a"], [1.5]])
def test_every_is_checked(tmp_path, every):
    model = small_network()
    with pytest.raises(TypeError, match="every is"):
        Recorder(model, torch.optim.SGD(model.parameters(), lr=0.1), tmp_path / "run", every=every)


def test_learning_rate_schedulers(tmp_path, read_log):
    for order in ("scheduler first", "recorder first"):
        model = small_network()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        folder = tmp_path / order
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            if order == "scheduler first":
                scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.5)
                recorder = Recorder(model, optimizer, folder).start()
            else:
                recorder = Recorder(model, optimizer, folder).start()
                scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.5)
            for step in range(3):
                train(model, optimizer, recorder, 1)
                scheduler.step()
            recorder.stop()
            train(model, optimizer, recorder, 1)  # the scheduler's wrapper still works
            scheduler.step()
        log = read_log(folder)
        assert [log.scalars[step]["learning_rate"] for step in range(3)] == [0.1, 0.05, 0.025]
        assert sorted(log.scalars) == [0, 1, 2]


def test_closures(tmp_path, read_log):
    model, twin = small_network(), small_network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def closure():
        optimizer.zero_grad()
        loss = loss_of(model, 0)
        loss.backward()
        return loss

    with Recorder(model, optimizer, tmp_path / "run"):
        returned = optimizer.step(closure)
    loss, seen = twin_step(twin, torch.optim.SGD(twin.parameters(), lr=0.1), 0)
    log = read_log(tmp_path / "run")
    assert returned.item() == loss == log.scalars[0]["loss"]
    for name in ("weight/3.weight", "weight_grad/3.weight", "activation_grad/1"):
        assert log.tables[name, 0]["table"] == halfscope.binade_table(seen[name])


def test_of_several_calls_of_a_closure_the_first_is_read(tmp_path, read_log):
    model, losses, weights = small_network(), [], []
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=3)

    def closure():
        optimizer.zero_grad()
        loss = loss_of(model, 0)
        loss.backward()
        losses.append(loss.item())
        weights.append(model[3].weight.detach().clone())
        return loss

    with Recorder(model, optimizer, tmp_path / "run"):
        for step in range(2):
            losses.clear(), weights.clear()
            optimizer.step(closure)
            first_loss, first_weight = losses[0], weights[0]
            assert len(set(losses)) > 1
    log = read_log(tmp_path / "run")
    assert sorted(log.scalars) == [0, 1] and log.scalars[1]["loss"] == first_loss
    assert log.tables["weight/3.weight", 1]["table"] == halfscope.binade_table(first_weight)
    assert log.tables["activation/3", 1]["shape"] == (7, 5)


def test_several_groups_and_parameters_of_the_optimizer_alone(tmp_path, read_log):
    model = small_network()
    temperature = torch.ones(2, requires_grad=True)
    optimizer = torch.optim.SGD([{"params": model.parameters()},
                                 {"params": [temperature], "lr": 0.5}], lr=0.1)
    with Recorder(model, optimizer, tmp_path / "run"):
        (loss_of(model, 0) * temperature.sum()).backward()
        optimizer.step()
    log = read_log(tmp_path / "run")
    assert log.scalars[0]["more"]["learning_rate/group-1"] == 0.5
    assert {"weight/optimizer.1.0", "weight_grad/optimizer.1.0", "update/optimizer.1.0"} <= set(
        log.names(0))


def test_tf32_that_was_set_in_the_newer_way(tmp_path, monkeypatch):
    class Newer:
        fp32_precision = "tf32"

        @property
        def allow_tf32(self):
            raise RuntimeError("mix of the legacy and new APIs")

    monkeypatch.setattr(torch.backends.cuda, "matmul", Newer())
    model = small_network()
    with Recorder(model, torch.optim.SGD(model.parameters(), lr=0.1), tmp_path / "run"):
        pass
    assert json.loads((tmp_path / "run" / "run.json").read_text())["tf32"]["matmul"] is True


def test_the_manifest_says_how_it_was_made(tmp_path):
    model = small_network()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    with Recorder(nn.DataParallel(model), optimizer, tmp_path / "run", every=range(0, 9, 3),
                  clipping="norm 1.0", about={"data": "none"}) as recorder:
        train(model, optimizer, recorder, 1)
    manifest = json.loads((tmp_path / "run" / "run.json").read_text())
    assert manifest["gradients"] == "unscaled" and manifest["data"] == "none"
    assert manifest["recorder"]["every"] == [0, 3, 6]
    assert manifest["recorder"]["clipping"] == "norm 1.0"
    assert manifest["recorder"]["update"] == "recomputed"
    assert manifest["optimizer"]["class"].endswith("Adam")
    assert manifest["optimizer"]["param_groups"][0]["params"] == [
        "0.weight", "0.bias", "3.weight", "3.bias"]
    assert manifest["versions"]["torch"] == torch.__version__


def test_a_run_goes_on_from_a_checkpoint(tmp_path, read_log):
    model = small_network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with Recorder(model, optimizer, tmp_path / "run", every=10, first_step=20) as recorder:
        train(model, optimizer, recorder, 2)
    log = read_log(tmp_path / "run")
    assert sorted(log.scalars) == [20, 21] and {step for _, step in log.tables} == {20}


def test_the_examples_of_the_documentation_run(root, tmp_path, monkeypatch, read_log, capsys,
                                               stand_in_scaler):
    blocks = re.findall(r"```python\n(.*?)```", (root / "docs" / "recording.md").read_text(), re.S)
    recorded, asked, with_scaler, *_ = blocks  # others need Lightning or Transformers: their tests
    monkeypatch.chdir(tmp_path)
    model = small_network()
    names = {"model": model, "optimizer": torch.optim.SGD(model.parameters(), lr=0.1),
             "batches": [batch(step) for step in range(11)],
             "loss_function": nn.functional.cross_entropy}
    exec(recorded, names)
    log = read_log("run")
    assert len(log.scalars) == 11 and {step for _, step in log.tables} == {0, 10}
    exec(asked, names)
    assert re.search(r"^\d+\.0 (weight|activation)_grad", capsys.readouterr().out)
    names.update(scaler=stand_in_scaler(), loss=loss_of(model, 0))
    exec(with_scaler.replace('"run"', repr(str(tmp_path / "scaled"))), names)
    assert read_log(tmp_path / "scaled").scalars[0]["loss"] == names["loss"].item()


@pytest.mark.parametrize("wrong", [
    {"model": 3}, {"optimizer": 3}, {"scaler": 3}, {"loss_scale": 0.0}, {"loss_scale": -1.0},
    {"loss_scale": float("nan")}, {"modules": "Linear"}, {"first_step": -1}, {"first_step": 1.5},
    {"first_step": 2**53}, {"about": "text"}, {"about": {"x": float("nan")}}, {"about": {"x": print}},
])
def test_wrong_arguments_are_refused_at_once(tmp_path, wrong):
    model = small_network()
    right = {"model": model, "optimizer": torch.optim.SGD(model.parameters(), lr=0.1), "out": tmp_path / "log"}
    with pytest.raises((TypeError, ValueError), match=f"{next(iter(wrong))}: found"):
        Recorder(**{**right, **wrong})
    assert not (tmp_path / "log").exists()
