# SPDX-License-Identifier: Apache-2.0
"""The update before it is rounded into the weight: against the true difference in binary64, and
against the same optimizer in binary64."""

import pytest
import torch
from small_runs import half_ulp
from torch import nn

import halfscope.optimizer
from halfscope.torch import Recorder, steps, updates

STEPS = 4
OPTIMIZERS = {
    "sgd": (torch.optim.SGD, {"lr": 0.03}),
    "sgd, decay": (torch.optim.SGD, {"lr": 0.03, "weight_decay": 0.01}),
    "momentum": (torch.optim.SGD, {"lr": 0.03, "momentum": 0.9}),
    "momentum, dampening": (torch.optim.SGD, {"lr": 0.03, "momentum": 0.9, "dampening": 0.5,
                                              "weight_decay": 0.01}),
    "nesterov": (torch.optim.SGD, {"lr": 0.03, "momentum": 0.9, "nesterov": True}),
    "nesterov, decay": (torch.optim.SGD, {"lr": 0.03, "momentum": 0.9, "nesterov": True,
                                          "weight_decay": 0.01}),
    "ascent": (torch.optim.SGD, {"lr": 0.03, "maximize": True, "weight_decay": 0.01}),
    "adam": (torch.optim.Adam, {"lr": 0.003}),
    "adam, decay": (torch.optim.Adam, {"lr": 0.003, "weight_decay": 0.01}),
    "amsgrad": (torch.optim.Adam, {"lr": 0.003, "amsgrad": True}),
    "adam, ascent": (torch.optim.Adam, {"lr": 0.003, "maximize": True}),
    "adamw": (torch.optim.AdamW, {"lr": 0.003, "weight_decay": 0.1}),
    "adamw, amsgrad": (torch.optim.AdamW, {"lr": 0.003, "weight_decay": 0.1, "amsgrad": True}),
    "adamw, no decay": (torch.optim.AdamW, {"lr": 0.003, "weight_decay": 0.0}),
    "nesterov, foreach": (torch.optim.SGD, {"lr": 0.03, "momentum": 0.9, "nesterov": True, "foreach": True}),
    "adamw, foreach": (torch.optim.AdamW, {"lr": 0.003, "foreach": True}),
    "sgd, foreach": (torch.optim.SGD, {"lr": 0.03, "momentum": 0.9, "nesterov": True,
                                       "weight_decay": 0.01, "foreach": True}),
}


class Weights(nn.Module):
    """One tensor, whose gradients are what the test says."""

    def __init__(self, values):
        super().__init__()
        self.w = nn.Parameter(values)


def weights_and_gradients():
    """Weights of many sizes, so that some updates are below half an ulp of theirs."""
    generator = torch.Generator().manual_seed(11)
    n = 4000
    weights = torch.randn(n, generator=generator) * torch.exp2(
        torch.randint(-12, 12, (n,), generator=generator).float())
    gradients = torch.randn(STEPS, n, generator=generator) * torch.exp2(
        torch.randint(-20, 3, (STEPS, n), generator=generator).float())
    return weights, gradients


def run(make, options, weights, gradients, folder=None):
    """Weights before and after each step."""
    model = Weights(weights.clone())
    optimizer = make(model.parameters(), **options)
    recorder = Recorder(model, optimizer, folder, sample_every=1).start() if folder else None
    at = [weights.clone()]
    for gradient in gradients:
        model.w.grad = gradient.clone()
        optimizer.step()
        at.append(model.w.detach().clone())
    if recorder:
        recorder.stop()
    return at


@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_weight_plus_update_rounds_to_the_next_weight(tmp_path, read_log, name, dtype):
    make, options = OPTIMIZERS[name]
    weights, gradients = weights_and_gradients()
    at = run(make, options, weights.to(dtype), gradients.to(dtype), tmp_path / "run")
    log = read_log(tmp_path / "run")
    roundings = 2 if make is torch.optim.AdamW else 1  # AdamW rounds the decayed weight too
    for step in range(STEPS):
        sample, _ = log.sample(step)
        assert torch.equal(sample["weight/w"], at[step])
        assert torch.equal(sample["weight_after/w"], at[step + 1])
        update = sample["update/w"]
        assert update.dtype == dtype
        error = (at[step].double() + update.double() - at[step + 1].double()).abs()
        # One rounding of the sum, and the roundings of the update's own terms.
        bound = (roundings * torch.maximum(half_ulp(at[step]), half_ulp(at[step + 1]))
                 + 4 * half_ulp(update))
        if dtype == torch.float64:  # the sum above is rounded to binary64 itself
            bound = 2 * bound
        worst = (error / bound).max().item()
        assert worst <= 1.0
        if dtype == torch.float32:
            assert worst > 0.3  # the bound is no wider than it must be


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_updates_are_those_of_the_same_optimizer_in_binary64(tmp_path, read_log, name):
    """Also where the binary32 weight is so large that it does not move at all."""
    make, options = OPTIMIZERS[name]
    weights, gradients = weights_and_gradients()
    narrow = run(make, options, weights, gradients, tmp_path / "run")
    log = read_log(tmp_path / "run")
    wide = run(make, options, weights.double(), gradients.double())
    unmoved = 0
    for step in range(STEPS):
        update = log.sample(step)[0]["update/w"].double()
        true = wide[step + 1] - wide[step]
        unmoved += ((narrow[step + 1] == narrow[step]) & (update != 0)).sum().item()
        # binary32 rounds moments and terms that may cancel; binary64 rounds the difference.
        size = options["lr"] * (gradients[:step + 1].abs().amax(0) if make is torch.optim.SGD
                                else torch.ones_like(weights)).double()
        decay = options.get("weight_decay", 0.01 if make is torch.optim.AdamW else 0.0)
        size = size + options["lr"] * decay * weights.abs().double()
        bound = 4e-6 * size + 2 * half_ulp(wide[step])
        if make is torch.optim.AdamW and decay:  # 1 - lr * decay is rounded to binary32 there
            bound = bound + 2.0**-25 * wide[step].abs()
        assert ((update - true).abs() <= bound).all()
    assert unmoved > 0 or decay


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_updates_of_16_bit_weights_are_float32(tmp_path, read_log, dtype):
    if dtype == torch.float16 and not hasattr(torch.amp, "GradScaler"):
        pytest.skip("this PyTorch has no float16 arithmetic on the CPU: bfloat16 is tested")
    weights, gradients = (t.to(dtype) for t in weights_and_gradients())
    at = run(torch.optim.SGD, {"lr": 0.03, "momentum": 0.9}, weights, gradients, tmp_path / "run")
    log = read_log(tmp_path / "run")
    for step in range(STEPS):
        sample, _ = log.sample(step)
        update = sample["update/w"]
        assert update.dtype == torch.float32
        # Every PyTorch rounds the sum; some processors' before it the rate, and its product, too.
        # Sum and product may be subnormal, where half an ulp is no share of them.
        info = torch.finfo(dtype)
        bound = (info.eps / 2 * (at[step + 1].double().abs() + 2.01 * update.double().abs())
                 + info.tiny * info.eps)
        assert ((at[step + 1].double() - at[step].double() - update.double()).abs() <= bound).all()
        assert log.tables["update/w", step]["source_dtype"] == "F32"


@pytest.mark.parametrize(("foreach", "fused", "chosen", "wanted"), [
    (None, None, False, "cpu"), (None, None, True, "cpu-foreach"), (None, False, True, "cpu"),
    (False, None, True, "cpu"), (True, None, False, "cpu-foreach"), (None, True, False, "cpu-fused")])
def test_updates_take_the_implementation_that_the_optimizer_does(monkeypatch, foreach, fused, chosen, wanted):
    """From 2.0 on PyTorch chooses it itself on a GPU: a stand-in makes the choice here."""
    monkeypatch.setattr(steps, "_choose",
                        lambda params, differentiable, use_fused: (False, chosen))
    compute, taken = halfscope.optimizer.step, []
    monkeypatch.setattr(halfscope.optimizer, "step",
                        lambda row, *given, **options: taken.append(row) or compute(row, *given, **options))
    weights, gradients = weights_and_gradients()
    model = Weights(weights.clone())
    model.w.grad = gradients[0].clone()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.003, foreach=foreach)
    group = optimizer.param_groups[0]
    optimizer.step()
    group["fused"] = fused  # its default is None from 2.0 on
    (update,) = updates.update_each(optimizer, [(model.w, group, weights, None)],
                                    {id(group): steps.takes_foreach(group)})
    assert taken == [wanted]
    assert ((weights.double() + update - model.w).abs() <= half_ulp(model.w.detach()) * 1.01
            + 1e-6 * update.abs()).all()  # the roots of two implementations


@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("foreach", [False, True])
def test_operations_for_a_gpu_give_the_updates_of_the_rows(monkeypatch, name, foreach):
    """They run on any device. Here, where the rows are PyTorch's on a CPU, the last bits differ."""
    make, options = OPTIMIZERS[name]
    weights, gradients = weights_and_gradients()
    model = Weights(weights.clone())
    optimizer = make(model.parameters(), **options)
    for gradient in gradients:
        before = model.w.detach().clone()
        model.w.grad = gradient.clone()
        optimizer.step()
        group = optimizer.param_groups[0]
        given = (optimizer, [(model.w, group, before, gradient)], {id(group): foreach})
        (by_row,) = updates.update_each(*given)
        with monkeypatch.context() as patch:
            patch.setattr(updates, "has_row", lambda *tensors: False)
            (by_operations,) = updates.update_each(*given)
        assert (by_row - by_operations).abs().max() <= 4e-7 * by_row.abs().max()


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_updates_computed_together_are_those_of_each(monkeypatch, name):
    """With foreach operations, for parameters of two dtypes and two groups, one of them a step behind."""
    make, options = OPTIMIZERS[name]
    torch.manual_seed(2)
    parameters = [torch.nn.Parameter(torch.randn(n, dtype=dtype))
                  for n, dtype in ((3, torch.float32), (700, torch.float32), (5, torch.bfloat16), (9, torch.float32))]
    optimizer = make([{"params": parameters[:3]}, {"params": parameters[3:], "lr": 0.5}], **options)
    for step in range(3):
        before = [p.detach().clone() for p in parameters]
        for p in parameters[step == 0:]:
            p.grad = torch.randn_like(p)
        optimizer.step()
    monkeypatch.setattr(updates, "has_row", lambda *tensors: False)
    groups = {id(group): True for group in optimizer.param_groups}
    trained = [(p, optimizer.param_groups[i == 3], weight, p.grad)
               for i, (p, weight) in enumerate(zip(parameters, before))]
    together = updates.update_each(optimizer, trained, groups)
    for one, update in zip(trained, together):
        assert torch.equal(updates.update_each(optimizer, [one], groups)[0], update)


def test_other_optimizers_record_weights_before_and_after(tmp_path, read_log):
    class MySGD(torch.optim.SGD):  # may do anything
        pass

    weights, gradients = weights_and_gradients()
    for make, options in ((torch.optim.RMSprop, {"lr": 0.01}), (MySGD, {"lr": 0.01})):
        folder = tmp_path / make.__name__
        at = run(make, options, weights, gradients, folder)
        log = read_log(folder)
        sample, _ = log.sample(1)
        assert "update/w" not in sample and ("update/w", 1) not in log.tables
        assert torch.equal(sample["weight/w"], at[1]) and torch.equal(sample["weight_after/w"], at[2])


def test_samples_hold_state_and_hyperparameters(tmp_path, read_log):
    import json

    weights, gradients = weights_and_gradients()
    model = Weights(weights.clone())
    optimizer = torch.optim.Adam(model.parameters(), lr=0.003)
    with Recorder(model, optimizer, tmp_path / "run", sample_every=1):
        for gradient in gradients:
            model.w.grad = gradient.clone()
            optimizer.step()
            state = {key: value.clone() for key, value in optimizer.state[model.w].items()}
    sample, metadata = read_log(tmp_path / "run").sample(STEPS - 1)
    for key, value in state.items():
        assert torch.equal(sample[f"optimizer_state/{key}/w"], value)
    (group,) = json.loads(metadata["hyperparameters"])
    assert (group["lr"], group["betas"], group["params"]) == (0.003, [0.9, 0.999], ["w"])
