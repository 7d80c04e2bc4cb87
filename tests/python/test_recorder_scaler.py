# SPDX-License-Identifier: Apache-2.0
"""The recorder and loss scaling: bits as they were, with the scale they carry."""

import copy
import inspect
import types
import warnings

import pytest
import torch
from torch import nn

import halfscope
from halfscope.torch import Recorder

HUGE = 3e38  # overflows when it is scaled


def linear():
    torch.manual_seed(5)
    return nn.Linear(3, 2)


def inputs(step, overflow_at=()):
    x = torch.randn(4, 3, generator=torch.Generator().manual_seed(step))
    return x.abs() * HUGE if step in overflow_at else x


def scaled_steps(model, optimizer, scaler, recorder, steps, overflow_at=(), unscale=False):
    """Returns per step: gradients as backward made them, and the scale."""
    attempts = []
    for step in range(steps):
        optimizer.zero_grad()
        scaler.scale(model(inputs(step, overflow_at)).mean()).backward()
        attempts.append(({name: p.grad.clone() for name, p in model.named_parameters()},
                         scaler.get_scale()))
        if unscale:
            scaler.unscale_(optimizer)
        scaler.step(optimizer)
        scaler.update()
    return attempts


def real_scaler():
    """The real class where it works without a GPU."""
    if not hasattr(torch.amp, "GradScaler"):
        pytest.skip("this PyTorch's GradScaler needs a GPU: the stand-in is tested")
    return torch.amp.GradScaler("cpu", init_scale=1024.0, growth_interval=3)


@pytest.fixture(params=["stand-in", "real"])
def scaler(request, stand_in_scaler):
    if request.param == "real":
        return real_scaler()
    return stand_in_scaler(init_scale=1024.0, growth_interval=3)


def test_gradients_are_recorded_before_unscaling_and_skips_are_steps(tmp_path, read_log, scaler):
    model = linear()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with Recorder(model, optimizer, tmp_path / "run", scaler=scaler) as recorder:
        attempts = scaled_steps(model, optimizer, scaler, recorder, 7, overflow_at=(4,))
    log = read_log(tmp_path / "run")

    assert [log.scalars[step]["loss_scale"] for step in range(7)] == [
        1024, 1024, 1024, 2048, 2048, 1024, 1024]
    assert [log.scalars[step]["found_inf"] for step in range(7)] == [step == 4 for step in range(7)]
    for step, (gradients, scale) in enumerate(attempts):
        assert log.scalars[step]["loss_scale"] == scale
        for name, gradient in gradients.items():
            record = log.tables[f"weight_grad/{name}", step]
            assert record["table"] == halfscope.binade_table(gradient)
            assert (record["scaled"], record["scale"]) == (True, scale)
        record = log.tables["activation_grad/model", step]
        assert (record["scaled"], record["scale"]) == (True, scale)
        assert not log.tables["activation/model", step]["scaled"]
        assert (("update/weight", step) in log.tables) == (step != 4)
        largest = max(g.abs().max().item() for g in gradients.values())
        assert log.scalars[step]["max_abs_weight_grad"] == largest / scale
        assert log.scalars[step]["max_abs_activation_grad"] == pytest.approx(1 / 8)
    assert log.scalars[4]["max_abs_weight_grad"] == float("inf")


def test_the_loss_is_seen_when_it_is_scaled(tmp_path, read_log, stand_in_scaler):
    model, scaler = linear(), stand_in_scaler()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses = []
    with Recorder(model, optimizer, tmp_path / "run", scaler=scaler) as recorder:
        for step in range(2):
            loss = model(inputs(step)).mean()
            losses.append(loss.item())
            scaler.scale(loss).backward()
            if step == 1:
                recorder.loss(-1.0)
            scaler.step(optimizer)
            scaler.update()
    log = read_log(tmp_path / "run")
    assert log.scalars[0]["loss"] == losses[0]
    assert log.scalars[1]["loss"] == -1.0  # what the loop says comes first


def test_what_the_loop_unscales_and_clips_was_read_before(tmp_path, read_log, scaler):
    model = linear()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with Recorder(model, optimizer, tmp_path / "run", scaler=scaler, sample_every=1) as recorder:
        attempts = scaled_steps(model, optimizer, scaler, recorder, 2, unscale=True)
    log = read_log(tmp_path / "run")
    for step, (gradients, scale) in enumerate(attempts):
        record = log.tables["weight_grad/weight", step]
        assert (record["scaled"], record["scale"]) == (True, scale)
        assert record["table"] == halfscope.binade_table(gradients["weight"])
        assert log.scalars[step]["max_abs_weight_grad"] == max(
            g.abs().max().item() for g in gradients.values()) / scale
        sample, metadata = log.sample(step)
        assert torch.equal(torch.as_tensor(sample["weight_grad/weight"]), gradients["weight"])
        assert (metadata["gradients"], metadata["activation_gradients"], metadata["scale"]) == (
            "scaled", "scaled", "1024.0")


def test_gradients_that_the_loop_made_are_read_at_the_step(tmp_path, read_log, stand_in_scaler):
    """No backward pass put them there: they are as they are when the step is attempted."""
    model, scaler = linear(), stand_in_scaler(init_scale=1024.0)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with Recorder(model, optimizer, tmp_path / "run", scaler=scaler):
        for unscale in (False, True):
            for p in model.parameters():
                p.grad = torch.ones_like(p)
            if unscale:
                scaler.unscale_(optimizer)
            scaler.step(optimizer)
            scaler.update()
    log = read_log(tmp_path / "run")
    records = [log.tables["weight_grad/weight", step] for step in (0, 1)]
    assert [(r["scaled"], r["scale"]) for r in records] == [(True, 1024.0), (False, 1.0)]
    assert [log.scalars[step]["max_abs_weight_grad"] for step in (0, 1)] == [1 / 1024, 1 / 1024]


def test_the_scale_is_used_by_the_analyzers(tmp_path, stand_in_scaler):
    """The same run with and without a scale (a power of two): the same unscaled findings."""
    findings = []
    for name, scaler in (("plain", stand_in_scaler(1.0)), ("scaled", stand_in_scaler(4096.0))):
        model = linear()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        with Recorder(model, optimizer, tmp_path / name, scaler=scaler) as recorder:
            scaled_steps(model, optimizer, scaler, recorder, 3)
        found = halfscope.analyze(tmp_path / name)
        findings.append([{key: t[key] for key in ("name", "binades", "max_abs", "by_scale")}
                         for t in found["tensors"]])
    assert findings[0] == findings[1]


def inside(optimizer):
    """Makes SGD one that unscales inside its step, as fused ones do, and skips by itself."""
    plain_step = type(optimizer).step

    def step(self, closure=None):
        told = {name: vars(self).pop(name) for name in ("grad_scale", "found_inf")}
        parameters = [p for group in self.param_groups for p in group["params"]]
        gradients = [p.grad for p in parameters]
        if not told["found_inf"]:
            for p in parameters:
                p.grad = p.grad / (1 if told["grad_scale"] is None else told["grad_scale"])
            plain_step(self, closure)
        for p, gradient in zip(parameters, gradients):
            p.grad = gradient  # still scaled: not all such optimizers write back
        vars(self).update(told)

    optimizer._step_supports_amp_scaling = True
    optimizer.step = types.MethodType(step, optimizer)
    return optimizer


@pytest.mark.parametrize("unscale", [False, True])
@pytest.mark.parametrize("nesterov", [False, True])
def test_optimizers_that_unscale_inside(tmp_path, read_log, stand_in_scaler, nesterov, unscale):
    model, twin = linear(), linear()
    options = {"lr": 0.1, "momentum": 0.9, "nesterov": True} if nesterov else {"lr": 0.1}
    optimizer = inside(torch.optim.SGD(model.parameters(), **options))
    own_step = optimizer.step
    scaler = stand_in_scaler(init_scale=1024.0)
    with Recorder(model, optimizer, tmp_path / "run", scaler=scaler, sample_every=1) as recorder:
        attempts = scaled_steps(model, optimizer, scaler, recorder, 4, (2,), unscale)
    assert optimizer.step == own_step  # what the object had of its own comes back
    log = read_log(tmp_path / "run")

    twin_optimizer = torch.optim.SGD(twin.parameters(), **options)
    with Recorder(twin, twin_optimizer, tmp_path / "twin", sample_every=1):
        for step in (0, 1, 3):
            twin_optimizer.zero_grad()
            twin(inputs(step)).mean().backward()
            twin_optimizer.step()
    twin_log = read_log(tmp_path / "twin")

    assert [log.scalars[step]["found_inf"] for step in range(4)] == [False, False, True, False]
    for step, (gradients, scale) in enumerate(attempts):
        record = log.tables["weight_grad/weight", step]
        assert record["table"] == halfscope.binade_table(gradients["weight"])
        assert record["scaled"]
        assert (("update/weight", step) in log.tables) == (step != 2)
    for step, twin_step in ((0, 0), (1, 1), (3, 2)):
        update, twin_update = log.sample(step)[0], twin_log.sample(twin_step)[0]
        assert torch.equal(update["update/weight"], twin_update["update/weight"])
        assert torch.equal(update["weight_after/weight"], twin_update["weight_after/weight"])


@pytest.mark.parametrize("make, options", [
    ("SGD", {"lr": 0.1}), ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True}),
    ("Adam", {"lr": 0.01}), ("AdamW", {"lr": 0.01, "weight_decay": 0.1})])
def test_real_fused_optimizers(tmp_path, read_log, make, options):
    scaler, model = real_scaler(), linear()
    optimizer = getattr(torch.optim, make)(model.parameters(), fused=True, **options)
    with Recorder(model, optimizer, tmp_path / "run", scaler=scaler, sample_every=1) as recorder:
        attempts = scaled_steps(model, optimizer, scaler, recorder, 4, overflow_at=(2,))
    log = read_log(tmp_path / "run")
    assert [log.scalars[step]["found_inf"] for step in range(4)] == [False, False, True, False]
    for step, (gradients, scale) in enumerate(attempts):
        record = log.tables["weight_grad/weight", step]
        assert record["table"] == halfscope.binade_table(gradients["weight"])
        assert (record["scaled"], record["scale"]) == (True, scale)
        if step != 2:
            sample, _ = log.sample(step)
            moved = sample["weight_after/weight"].double() - sample["weight/weight"].double()
            assert (moved - sample["update/weight"].double()).abs().max() < 2e-7


def test_the_old_way_of_telling_an_optimizer_that_unscales_inside(tmp_path, read_log):
    """PyTorch 1.13 hands the scaler itself to step(): seen through the wrapper's signature too."""

    class Scaler:
        def get_scale(self):
            return 8.0

        def scale(self, loss):
            return loss * 8.0

        unscale_ = update = lambda self, *args: None

        def _check_inf_per_device(self, optimizer):
            finite = all(torch.isfinite(p.grad).all() for p in optimizer.param_groups[0]["params"])
            return {"cpu": torch.tensor(0.0 if finite else 1.0)}

        def step(self, optimizer):
            return optimizer.step(grad_scaler=self)

    class Optimizer(torch.optim.SGD):
        _step_supports_amp_scaling = True

        def step(self, closure=None, *, grad_scaler=None):
            assert grad_scaler is not None

    model, scaler = linear(), Scaler()
    optimizer = Optimizer(model.parameters(), lr=0.1)
    with Recorder(model, optimizer, tmp_path / "run", scaler=scaler) as recorder:
        scaled_steps(model, optimizer, scaler, recorder, 2, overflow_at=(1,))
    log = read_log(tmp_path / "run")
    assert [log.scalars[step]["found_inf"] for step in (0, 1)] == [False, True]
    assert ("update/weight", 0) not in log.tables  # a subclass may do anything


def test_one_scaler_for_two_optimizers(tmp_path, read_log, stand_in_scaler):
    one, two, scaler = linear(), linear(), stand_in_scaler()
    first = torch.optim.SGD(one.parameters(), lr=0.1)
    second = torch.optim.SGD(two.parameters(), lr=0.1)
    with Recorder(one, first, tmp_path / "one", scaler=scaler), Recorder(
            two, second, tmp_path / "two", scaler=scaler):
        for step in range(2):
            scaler.scale(one(inputs(step, (1,))).mean()).backward()
            scaler.scale(two(inputs(step)).mean()).backward()
            scaler.step(first)
            scaler.step(second)
            scaler.update()
    logs = [read_log(tmp_path / name) for name in ("one", "two")]
    assert [log.scalars[1]["found_inf"] for log in logs] == [True, False]
    assert ("update/weight", 1) not in logs[0].tables and ("update/weight", 1) in logs[1].tables


def test_exceptions_put_the_scaler_back(tmp_path, stand_in_scaler):
    model, scaler = linear(), stand_in_scaler()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    before, signature = dict(vars(scaler)), inspect.signature(scaler.step)
    with pytest.raises(RuntimeError, match="already been called"):
        with Recorder(model, optimizer, tmp_path / "run", scaler=scaler):
            assert inspect.signature(scaler.step) == signature
            model(inputs(0)).mean().backward()
            scaler.unscale_(optimizer)
            scaler.unscale_(optimizer)
    assert vars(scaler).keys() == before.keys()
    assert "step" not in vars(optimizer)


def test_a_disabled_scaler_is_none(tmp_path, read_log):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that there is no GPU
        scaler = torch.cuda.amp.GradScaler(enabled=False)
    model = linear()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with Recorder(model, optimizer, tmp_path / "run", scaler=scaler) as recorder:
        scaled_steps(model, optimizer, scaler, recorder, 2)
    log = read_log(tmp_path / "run")
    assert [log.scalars[step]["loss_scale"] for step in (0, 1)] == [1.0, 1.0]
    assert not log.tables["weight_grad/weight", 1]["scaled"]


@pytest.mark.parametrize("unscaled_before_step", [False, True])
def test_a_scale_the_loop_applies_itself(tmp_path, read_log, unscaled_before_step):
    model = linear()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with Recorder(model, optimizer, tmp_path / "run", loss_scale=256.0,
                  unscaled_before_step=unscaled_before_step):
        (256 * model(inputs(0)).mean()).backward()
        if unscaled_before_step:
            for p in model.parameters():
                p.grad.div_(256)
        optimizer.step()
    log = read_log(tmp_path / "run")
    assert log.tables["weight_grad/weight", 0]["scaled"]
    assert log.tables["activation_grad/model", 0]["scale"] == 256.0
    assert log.scalars[0]["max_abs_activation_grad"] == pytest.approx(1 / 8)
    largest = max(p.grad.abs().max().item() for p in model.parameters())
    assert log.scalars[0]["max_abs_weight_grad"] == (
        largest if unscaled_before_step else largest / 256)  # 256 is a power of two


@pytest.mark.parametrize("scale", [0.0, float("inf")])
def test_a_scale_that_ran_away_is_not_known(tmp_path, read_log, stand_in_scaler, scale):
    model, scaler = linear(), stand_in_scaler(scale)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with Recorder(model, optimizer, tmp_path / "run", scaler=scaler):
        scaler.scale(model(inputs(0)).mean()).backward()
        scaler.unscale_ = lambda optimizer: scaler._states[id(optimizer)].update(found_inf=True)
        scaler.step(optimizer)
    log = read_log(tmp_path / "run")
    record = log.tables["weight_grad/weight", 0]
    assert (record["scaled"], record["scale"]) == (True, None)
    assert log.scalars[0]["loss_scale"] == scale and log.scalars[0]["found_inf"]
    with pytest.raises(halfscope.BadInput, match="scale"):
        halfscope.analyze(tmp_path / "run")


def test_a_scale_and_a_scaler_are_too_much(tmp_path, stand_in_scaler):
    model = linear()
    with pytest.raises(ValueError, match="expected one"):
        Recorder(model, torch.optim.SGD(model.parameters(), lr=0.1), tmp_path / "run", loss_scale=2.0,
                 scaler=stand_in_scaler())


def test_a_copy_of_the_scaler_is_not_the_loops(tmp_path, stand_in_scaler):
    """The methods that the recorder wraps come with the copy, and do there what they did before."""
    model = linear()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = stand_in_scaler(1024.0)
    with Recorder(model, optimizer, tmp_path / "run", scaler=scaler):
        copied = copy.deepcopy(scaler)
        copied._scale = 4.0
        assert copied.scale(1.0) == 4.0
        scaler.scale(model(torch.ones(1, 3)).sum()).backward()
        copied.step(optimizer)  # unscales by 4
        copied.update()
        assert copied._clean_steps == 1 and scaler._clean_steps == 0
    assert copied.scale(1.0) == 4.0
