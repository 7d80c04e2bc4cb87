# SPDX-License-Identifier: Apache-2.0
"""What values were computed in, under autocast and without."""

import json

import pytest
import torch
from torch import nn

import halfscope
from halfscope.torch import Recorder


class Mixed(nn.Module):
    """A module with weights of its own besides submodules, a normalization, two linear layers."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(6, 6)
        self.norm = nn.BatchNorm1d(6)
        self.last = nn.Linear(6, 3)
        self.gain = nn.Parameter(torch.ones(3))

    def forward(self, x):
        return self.last(self.norm(self.first(x))) * self.gain


def record(folder, read_log, autocast, model=None):
    torch.manual_seed(2)
    model = model or Mixed()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with Recorder(model, optimizer, folder, sample_every=1):
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=autocast):
            output = model(torch.randn(8, 6))
        output.float().square().sum().backward()
        optimizer.step()
    log = read_log(folder)
    return {name: (r["source_dtype"], r["computed_dtype"]) for (name, _), r in log.tables.items()}, log


def test_without_autocast_everything_is_what_it_is_stored_in(tmp_path, read_log):
    types, _ = record(tmp_path / "run", read_log, autocast=False)
    for name, (source, computed) in types.items():
        if name.startswith(("weight_grad/", "activation")):
            assert (source, computed) == ("F32", "F32"), name


def test_under_autocast_gradients_of_lowered_layers_are_16_bit_results(tmp_path, read_log):
    types, log = record(tmp_path / "run", read_log, autocast=True)
    assert types["activation/first"] == ("BF16", "BF16")
    assert types["weight/first.weight"][0] == "F32"
    for name in ("first.weight", "first.bias", "last.weight", "last.bias"):
        assert types[f"weight_grad/{name}"] == ("F32", "BF16"), name
        # The judge: every value of the float32 gradient is a bfloat16 value.
        gradient = log.sample(0)[0][f"weight_grad/{name}"]
        assert torch.equal(gradient, gradient.bfloat16().float())
    assert types["weight_grad/norm.weight"] == ("F32", "F32")
    gradient = log.sample(0)[0]["weight_grad/norm.weight"]
    assert not torch.equal(gradient, gradient.bfloat16().float())
    assert types["weight_grad/gain"] == ("F32", None)  # of a module with submodules: not known
    assert types["update/first.weight"][0] == "F32"


def test_a_float32_output_under_autocast_may_have_a_16_bit_gradient(tmp_path, read_log):
    class Softmax(nn.Module):
        def __init__(self):
            super().__init__()
            self.soft = nn.Softmax(dim=1)  # float32 under autocast
            self.last = nn.Linear(6, 3)

        def forward(self, x):
            return self.last(self.soft(x.requires_grad_()))

    types, log = record(tmp_path / "run", read_log, autocast=True, model=Softmax())
    source, computed = types["activation_grad/soft"]
    assert types["activation/soft"] == ("F32", "F32")
    gradient = log.sample(0)[0]["activation_grad/soft"]
    assert torch.equal(gradient, gradient.bfloat16().float())  # came back through bfloat16
    assert (source, computed) == ("F32", None)


def test_a_model_in_16_bits(tmp_path, read_log):
    model = nn.Linear(6, 3).bfloat16()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with Recorder(model, optimizer, tmp_path / "run"):
        model(torch.randn(4, 6).bfloat16()).float().sum().backward()
        gradient = model.weight.grad.clone()
        optimizer.step()
    record = read_log(tmp_path / "run").tables["weight_grad/weight", 0]
    assert (record["source_dtype"], record["computed_dtype"]) == ("BF16", "BF16")
    assert record["table"] == halfscope.binade_table(gradient)


def test_a_weight_used_with_and_without_autocast_is_not_known(tmp_path, read_log):
    torch.manual_seed(0)
    model = nn.Linear(6, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with Recorder(model, optimizer, tmp_path / "run"):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            low = model(torch.randn(4, 6))
        (low.float() + model(torch.randn(4, 6))).sum().backward()
        optimizer.step()
    log = read_log(tmp_path / "run")
    assert log.tables["weight_grad/weight", 0]["computed_dtype"] is None
    record = log.tables["activation/model", 0]  # once bfloat16, once float32
    assert (record["source_dtype"], record["computed_dtype"], record["shape"]) == ("F32", None, (2, 4, 3))


class CastsItself(nn.Module):
    """Autocast inside of forward(), as Accelerate wraps it."""

    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(6, 3)

    def forward(self, x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return self.inner(x)


def said_of_autocast(folder):
    return json.loads((folder / "run.json").read_text())["autocast"]


@pytest.mark.parametrize("autocast, said", [(False, None), (True, "bfloat16")])
def test_the_manifest_has_the_state_of_autocast(tmp_path, read_log, autocast, said):
    record(tmp_path / "run", read_log, autocast)
    assert said_of_autocast(tmp_path / "run") == {"cpu": said}


def test_the_manifest_has_autocast_that_begins_inside_of_the_model(tmp_path, read_log):
    record(tmp_path / "run", read_log, autocast=False, model=CastsItself())
    assert said_of_autocast(tmp_path / "run") == {"cpu": "bfloat16"}


def test_autocast_is_that_of_training_steps(tmp_path):
    """An evaluation without autocast, before and between, changes nothing."""
    model = nn.Linear(6, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with Recorder(model, optimizer, tmp_path / "run", every=2):
        for _ in range(3):
            with torch.no_grad():
                model(torch.ones(2, 6))
            with torch.autocast("cpu", dtype=torch.bfloat16):
                loss = model(torch.ones(2, 6)).float().sum()
            loss.backward()
            optimizer.step()
            assert said_of_autocast(tmp_path / "run") == {"cpu": "bfloat16"}
