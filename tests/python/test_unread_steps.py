# SPDX-License-Identifier: Apache-2.0
"""Steps whose activation gradients were not read: the default reads them all, and where a log lacks
them the answer says so, with one number for one thing."""

import json
import re

import pytest
import torch
from torch import nn

import halfscope
from halfscope.torch import Recorder
from halfscope.torch.tensors import largest_of, largest_of_each
from program import stdout_of

STEPS, SPIKES = 61, (7, 23, 41)


class Gain(nn.Module):
    """Multiplies by a factor; the gradient of its output is that of its input over the factor."""

    factor = 1.0

    def forward(self, x):
        return x * self.factor


def train(folder, **settings):
    """61 steps, of which three have large gradients of one activation and ordinary ones of all
    weights. Returns the largest gradient of each step, by hooks of PyTorch alone."""
    torch.manual_seed(0)
    gain = Gain()
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1), gain)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
    largest = []
    for module in model:
        module.register_full_backward_hook(
            lambda _, __, grads: largest[-1].append(grads[0].abs().max().item()))
    with Recorder(model, optimizer, folder, **{"every": 20, **settings}) as recorder:
        for step in range(STEPS):
            largest.append([])
            optimizer.zero_grad()
            gain.factor = 1e-7 if step in SPIKES else 1.0
            y = model(torch.randn(32, 8))
            recorder.loss((y / gain.factor).square().mean() / 10).backward()
            largest[-1] += [p.grad.abs().max().item() for p in model.parameters()]
            optimizer.step()
    return [max(values) for values in largest]


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("unread")
    largest = train(folder / "default")
    train(folder / "few", magnitudes_every=None)
    return folder, largest


def test_by_default_every_step_is_read(runs, read_log):
    folder, largest = runs
    scalars = read_log(folder / "default").scalars
    read = [max(scalars[step]["max_abs_activation_grad"], scalars[step]["max_abs_weight_grad"])
            for step in range(STEPS)]
    assert read == largest
    advice = halfscope.recommend(folder / "default")
    assert "unread" not in advice and advice["limited_by"]["step"] in SPIKES
    assert advice["static_scale"] * max(largest) < 65520 / 2
    assert advice["skip"]["steps"] == STEPS and "unread_steps" not in advice["skip"]


def test_without_them_the_scale_is_a_bound_and_the_first_sentence_says_why(runs, root):
    folder, largest = runs
    advice = halfscope.recommend(folder / "few")
    assert advice["unread"] == {"role": "activation_grad", "steps": 57, "of": STEPS}
    assert advice["overflow_not_identifiable"]
    assert advice["static_scale"] * max(largest) > 65520  # so it has to be a bound
    first = stdout_of("recommend", folder / "few").splitlines()[0]
    scale = f"{advice['static_scale']:.0f}"
    assert f"at most {scale} " in first
    assert first.endswith("activation gradients were read at 4 of 61 steps; magnitudes_every=1 "
                          "reads them all.")
    assert "never grows" not in stdout_of("recommend", folder / "few")


def test_unread_steps_are_not_counted_as_clean(runs, root):
    """0 of 4: at most 1 - 0.05 ** (1 / 4)."""
    folder, _ = runs
    advice = halfscope.recommend(folder / "few")
    most = pytest.approx(1 - 0.05 ** 0.25)
    assert (advice["skip"]["steps"], advice["skip"]["unread_steps"]) == (4, 57)
    assert advice["skip"]["interval"] == [0, most]
    assert advice["dynamic"]["expected_skip_interval"] == [0, most]
    for row in advice["scales"]:
        assert row["overflow_steps"] == [0, 57] or row["skip"]["exceedances"]
    details = stdout_of("recommend", folder / "few", "--details")
    assert re.search(r"At .*, 0 of 4 steps whose gradients were all read overflow \(at most 52.7 %", details)
    assert "it skips 0 of 4 steps whose gradients were all read (at most 52.7 %" in details
    assert not re.search(r"4\.79 %|98\.2 %|0 to 57 of 61", details)


def test_a_scaler_tells_of_steps_that_were_not_read(tmp_path, stand_in_scaler):
    """Where the run itself tested a step at a scale, it is known to hold smaller ones."""
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
    scaler = stand_in_scaler(2.0**14)
    with Recorder(model, optimizer, tmp_path / "run", every=20, magnitudes_every=None,
                  scaler=scaler):
        for _ in range(40):
            optimizer.zero_grad()
            scaler.scale(model(torch.randn(32, 8)).square().mean()).backward()
            scaler.step(optimizer)
            scaler.update()
    rows = {row["log2_scale"]: row for row in halfscope.recommend(tmp_path / "run")["scales"]}
    assert rows[14]["skip"]["steps"] == 40 and rows[14]["overflow_steps"] == 0
    assert rows[15]["skip"]["steps"] == 2 and rows[15]["skip"]["unread_steps"] == 38


@pytest.mark.parametrize("setting, told", [({}, 1), ({"magnitudes_every": None}, None),
                                           ({"magnitudes_every": 5}, 5)])
def test_the_manifest_says_which_steps(tmp_path, read_log, setting, told):
    train(tmp_path / "run", **setting)
    assert json.loads((tmp_path / "run/run.json").read_text())["recorder"]["magnitudes_every"] == told
    read = {step for step, scalars in read_log(tmp_path / "run").scalars.items()
            if scalars["max_abs_activation_grad"] is not None}
    assert read == {step for step in range(STEPS) if step % 20 == 0 or (told and step % told == 0)}


@pytest.mark.parametrize("make", [
    lambda x: x, lambda x: x.transpose(0, 2), lambda x: x.permute(2, 0, 1), lambda x: x[:, ::2],
    lambda x: x[:1, :1, :1].expand(3, 4, 5), lambda x: x.half().mT, lambda x: x.to_sparse()])
@pytest.mark.parametrize("value", [-7.5, float("inf"), float("nan")])
def test_tensors_in_any_order_have_their_largest_magnitude(make, value):
    x = torch.linspace(-1, 1, 60).reshape(3, 4, 5)
    x[0, 0, 0] = value
    found = largest_of(largest_of_each([make(x)]))
    assert found == abs(value) or (value != value and found != found)
