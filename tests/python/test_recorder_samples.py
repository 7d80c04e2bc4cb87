# SPDX-License-Identifier: Apache-2.0
"""What samples hold: sample_roles, and the size of a sample, which is told before the first."""

import json
import logging

import pytest

torch = pytest.importorskip("torch")

from small_runs import small_network, train  # noqa: E402

from halfscope.torch import Recorder  # noqa: E402
from halfscope._run_log import RunLog  # noqa: E402
from halfscope.torch.roles import ROLES  # noqa: E402


def record(folder, roles, steps=2):
    model = small_network()
    optimizer = torch.optim.Adam(model.parameters())
    with Recorder(model, optimizer, folder, sample_every=1, sample_roles=roles,
                  local_gradients=True) as recorder:
        train(model, optimizer, recorder, steps)
    return json.loads((folder / "run.json").read_text())["recorder"]["sample_roles"]


def roles_of(log, step):
    return {name.partition("/")[0] for name in log.sample(step)[0]}


@pytest.mark.parametrize("chosen", [["weight", "update"], ["update", "optimizer_state"],
                                    "activation_grad", ("weight_after", "weight_grad")])
def test_a_sample_holds_the_chosen_roles_alone(tmp_path, read_log, chosen):
    pytest.importorskip("safetensors")
    told = record(tmp_path / "run", chosen)
    record(tmp_path / "all", None)
    log, everything = read_log(tmp_path / "run"), read_log(tmp_path / "all")
    expected = {chosen} if isinstance(chosen, str) else set(chosen)
    assert set(told) == expected
    for step in range(2):
        assert roles_of(log, step) == expected
        mine, all_of_it = log.sample(step)[0], everything.sample(step)[0]
        assert mine.keys() == {name for name in all_of_it if name.partition("/")[0] in expected}
        assert all(torch.equal(values, all_of_it[name]) for name, values in mine.items())
    assert set(log.tables) == set(everything.tables)  # histograms are there all the same


def test_by_default_it_holds_all(tmp_path, read_log):
    pytest.importorskip("safetensors")
    assert record(tmp_path / "run", None) is None
    assert roles_of(read_log(tmp_path / "run"), 1) == set(ROLES) - {
        "master_weight",  # of emulate()
        "local_weight_grad"}  # of several microbatches


@pytest.mark.parametrize("wrong, found", [(["weight", "weights"], "'weights'"), ("grad", "'grad'"),
                                          (["b", "a"], "'a', 'b'")])
def test_a_role_that_is_unknown_is_refused_with_those_that_are_known(tmp_path, wrong, found):
    model = small_network()
    with pytest.raises(ValueError) as refused:
        Recorder(model, torch.optim.SGD(model.parameters(), lr=0.1), tmp_path / "run",
                 sample_roles=wrong)
    assert str(refused.value) == f"sample_roles: found {found}, expected some of " + ", ".join(ROLES)


def record_wide(folder, monkeypatch, width, roles, caplog):
    """Three steps of a square layer; what was logged when each sample was written."""
    logged = []

    def write_sample(self, step, tensors, metadata):
        logged.append([r.getMessage() for r in caplog.records if r.name == "halfscope"])

    monkeypatch.setattr(RunLog, "write_sample", write_sample)
    layer = torch.nn.Linear(width, width, bias=False)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
    with caplog.at_level(logging.WARNING, "halfscope"):
        with Recorder(layer, optimizer, folder, sample_every=1, sample_roles=roles):
            for _ in range(3):
                layer(torch.ones(1, width)).sum().backward()
                optimizer.step()
    return logged


def test_the_size_of_a_large_sample_is_told_once_and_before_it_is_written(tmp_path, monkeypatch,
                                                                         caplog):
    logged = record_wide(tmp_path / "run", monkeypatch, 512, ["weight", "update", "activation"],
                         caplog)
    expected = (f"{tmp_path / 'run'}: each sample needs 2.0 MiB (weight 1.0 MiB, update 1.0 MiB, "
                "activation 0.0 MiB); sample_roles chooses what it holds")
    assert logged == [[expected]] * 3


@pytest.mark.parametrize("width, roles, told", [(512, ["weight"], True), (511, ["weight"], False),
                                                (512, ["activation"], False)])
def test_a_sample_below_a_mebibyte_is_not_told(tmp_path, monkeypatch, caplog, width, roles, told):
    logged = record_wide(tmp_path / "run", monkeypatch, width, roles, caplog)
    assert [len(lines) for lines in logged] == [int(told)] * 3
