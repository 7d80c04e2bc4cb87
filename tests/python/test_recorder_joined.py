# SPDX-License-Identifier: Apache-2.0
"""Parameters that join the optimizer, or are replaced, after the recorder was made."""

import json
import warnings

import pytest
import torch
from small_runs import batch, gradients_of, largest, loss_of, require_recorded, small_network
from torch import nn

import halfscope
from halfscope.torch import Recorder


class WithHead(nn.Module):
    """A network that gets a head later, whose gradients are large."""

    def __init__(self):
        super().__init__()
        self.body = small_network()

    def add_head(self):
        self.head = nn.Linear(5, 5)
        return self.head

    def forward(self, x):
        x = self.body(x)
        return self.head(x) if hasattr(self, "head") else x


def loss_with_head(model, step):
    x, y = batch(step)
    loss = nn.functional.cross_entropy(model(x), y)
    return loss + 1e4 * model.head.weight.sum() if hasattr(model, "head") else loss


def require_all_recorded(log, made):
    for step, gradients in enumerate(made):
        have = {name.partition("/")[2] for name in log.names(step)
                if name.startswith("weight_grad/")}
        assert have == set(gradients), step
        require_recorded(log, step, gradients)
        assert "gradients_missing" not in log.scalars[step]["more"]


def train(model, optimizer, loss, steps, change):
    """change: called with each step, before it. Gives the gradients of each, before clipping."""
    made = []
    for step in range(steps):
        change(step)
        optimizer.zero_grad()
        loss(model, step).backward()
        made.append(gradients_of(model))
        nn.utils.clip_grad_norm_(model.parameters(), 0.001)
        optimizer.step()
    return made


def test_a_group_that_joins_is_recorded_from_then_on(tmp_path, read_log):
    model = WithHead()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4, momentum=0.9)

    def change(step):
        if step == 2:
            optimizer.param_groups[0]["lr"] = 1e-5
            optimizer.add_param_group({"params": model.add_head().parameters(), "lr": 1e-6})

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with Recorder(model, optimizer, tmp_path / "run", sample_every=1):
            made = train(model, optimizer, loss_with_head, 6, change)
    log = read_log(tmp_path / "run")
    require_all_recorded(log, made)
    for step in (2, 5):
        assert {"activation/head", "activation_grad/head", "weight/head.weight",
                "update/head.weight"} <= set(log.names(step))
        assert "microbatch" not in str(log.scalars[step]["more"])
    assert halfscope.recommend(tmp_path / "run")["static_scale"] * largest(made[5]) < 65520

    manifest = json.loads((tmp_path / "run" / "run.json").read_text())
    groups = manifest["optimizer"]["param_groups"]
    assert [group["params"][-1] for group in groups] == ["body.3.bias", "head.bias"]
    assert [group["lr"] for group in groups] == [1e-4, 1e-6]  # of the first as at the start
    assert "head" in manifest["network"]["text"] and manifest["schema"] == 1
    assert not [p.name for p in (tmp_path / "run").iterdir() if p.name.startswith(".")]


def test_a_replaced_module_goes_on_under_its_name(tmp_path, read_log):
    model = small_network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    old = model[3]

    def change(step):
        if step == 2:
            model[3] = nn.Linear(4 * 6 * 6, 5)
            optimizer.param_groups[0]["params"] = list(model.parameters())

    with Recorder(model, optimizer, tmp_path / "run", local_gradients=True):
        made = train(model, optimizer, loss_of, 5, change)
        old(torch.ones(1, 4 * 6 * 6)).sum().backward()  # is of the run no more
        optimizer.step()
    log = read_log(tmp_path / "run")
    require_all_recorded(log, made)
    assert log.tables["activation/3", 4]["shape"] == (7, 5)
    for module in (old, model[3]):
        assert not module._forward_hooks
        assert not any(p._backward_hooks for p in module.parameters())


def test_the_about_of_the_user_stays(tmp_path):
    model = WithHead()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    with Recorder(model, optimizer, tmp_path / "run", about={"network": "mine"}):
        train(model, optimizer, loss_with_head, 2, lambda step: step == 1 and
              optimizer.add_param_group({"params": model.add_head().parameters()}))
    manifest = json.loads((tmp_path / "run" / "run.json").read_text())
    assert manifest["network"] == "mine"
    assert "head.bias" in manifest["optimizer"]["param_groups"][1]["params"]


def test_one_that_the_model_does_not_know_is_named_by_its_place(tmp_path, read_log):
    model, factor = small_network(), nn.Parameter(torch.ones(1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with Recorder(model, optimizer, tmp_path / "run"):
        for step in range(3):
            optimizer.zero_grad()
            if step == 1:
                optimizer.add_param_group({"params": [factor]})
            (loss_of(model, step) * 100 * factor).sum().backward()
            optimizer.step()
    log = read_log(tmp_path / "run")
    assert [("weight_grad/optimizer.1.0", step) in log.tables for step in range(3)] == [
        False, True, True]
    assert log.scalars[1]["max_abs_weight_grad"] > 100


@pytest.mark.parametrize("joins", [True, False])
def test_one_that_joins_behind_backward_is_missing_once(tmp_path, read_log, joins):
    model = WithHead()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    head = model.add_head()
    with Recorder(model, optimizer, tmp_path / "run"), warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for step in range(4):
            model.zero_grad()
            loss_with_head(model, step).backward()
            if step == 1 and joins:
                optimizer.add_param_group({"params": head.parameters()})
            optimizer.step()
    log = read_log(tmp_path / "run")
    missing = [log.scalars[step]["more"].get("gradients_missing") for step in range(4)]
    assert missing == ([None, 2, None, None] if joins else [None] * 4)
    messages = [str(warning.message) for warning in told]
    assert len(messages) == joins
    assert not joins or "step 1 uses 2 gradients" in messages[0]
    advice = halfscope.recommend(tmp_path / "run")
    assert advice.get("incomplete_steps") == (1 if joins else None)
    assert advice.get("overflow_not_identifiable") == (True if joins else None)


def test_types_that_are_not_recorded_are_marked(tmp_path, read_log):
    model = nn.Linear(3, 3)
    waves = nn.Parameter(torch.ones(3, dtype=torch.complex64))
    optimizer = torch.optim.SGD([*model.parameters(), waves], lr=0.1)
    with Recorder(model, optimizer, tmp_path / "run"), pytest.warns(RuntimeWarning, match="0.2"):
        for _ in range(2):
            optimizer.zero_grad()
            (model(torch.ones(2, 3)) * waves).abs().sum().backward()
            optimizer.step()
    log = read_log(tmp_path / "run")
    assert [log.scalars[step]["more"]["gradients_missing"] for step in range(2)] == [1, 1]


def test_groups_that_take_turns(tmp_path, read_log):
    """Parts of a model, trained in turns by one optimizer: run.json has all of them."""
    model = small_network()
    optimizer = torch.optim.SGD(model[0].parameters(), lr=0.1)
    with Recorder(model, optimizer, tmp_path / "run", local_gradients=True):
        for step in range(6):
            optimizer.param_groups[0]["params"] = list(model[3 * (step % 2)].parameters())
            model.zero_grad()
            loss_of(model, step).backward()
            optimizer.step()
    log = read_log(tmp_path / "run")
    for step in range(6):
        have = sorted(name for name in log.names(step) if name.startswith("weight_grad/"))
        assert have == [f"weight_grad/{3 * (step % 2)}.{part}" for part in ("bias", "weight")]
        assert not [tag for tag in log.scalars[step]["more"] if "microbatch" in tag]
    manifest = json.loads((tmp_path / "run" / "run.json").read_text())
    assert manifest["optimizer"]["param_groups"][0]["params"] == [
        "0.weight", "0.bias", "3.weight", "3.bias"]
