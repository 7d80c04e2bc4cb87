# SPDX-License-Identifier: Apache-2.0
"""A dynamic loss scale that grows until a step overflows does what it is for; a static one that
overflows is too large."""

import pytest
import torch
from torch import nn

import halfscope
from halfscope.torch import emulate
from program import schema, stdout_of


def train(folder, loss_scale, steps=120):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    with emulate(model, optimizer, precision="mixed", loss_scale=loss_scale, log=folder) as run:
        for _ in range(steps):
            optimizer.zero_grad()
            run.backward((model(torch.randn(64, 8)) - 1).square().mean())
            optimizer.step()
    return run


@pytest.mark.parametrize("interval", [5, 8, 20])
def test_a_scale_that_grows_and_backs_off_is_not_too_large(tmp_path, interval):
    run = train(tmp_path / "run", f"torch,init_scale=4096,growth_interval={interval}")
    events = halfscope.recommend(tmp_path / "run")["overflow_events"]
    assert run.skipped == len(events) > 2
    assert all(event["cause"] == "by_scale" and event["growth_probe"] for event in events)
    schema("recommend").validate(halfscope.recommend(tmp_path / "run"))
    details = stdout_of("recommend", tmp_path / "run", "--details")
    assert "loss scale is too large" not in details
    findings = [f["title"] for f in halfscope.recommend(tmp_path / "run")["answer"]["findings"]]
    assert any(title.startswith(f"The dynamic loss scale grows until gradients overflow: {run.skipped} "
                                "times") for title in findings)


def test_a_scale_that_began_there_is(tmp_path):
    train(tmp_path / "run", "torch,init_scale=4194304", 30)
    events = halfscope.recommend(tmp_path / "run")["overflow_events"]
    assert events and not any("growth_probe" in event for event in events)
    assert "loss scale is too large" in stdout_of("recommend", tmp_path / "run", "--details")
