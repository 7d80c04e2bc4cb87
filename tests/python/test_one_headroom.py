# SPDX-License-Identifier: Apache-2.0
"""Headroom has one number: over all steps, or with the name of the steps that it is of."""

import html
import re

import torch
from torch import nn

import halfscope
from halfscope.torch import Recorder
from program import run


def test_the_page_has_the_least_of_all_steps(tmp_path):
    """The largest gradient is of a step without histograms."""
    torch.manual_seed(0)
    model = nn.Linear(8, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
    with Recorder(model, optimizer, tmp_path / "run", every=20):
        for step in range(41):
            optimizer.zero_grad()
            (model(torch.randn(32, 8)).square().mean() * (1.7 if step == 7 else 1)).backward()
            optimizer.step()
    advice = halfscope.recommend(tmp_path / "run")
    assert advice["limited_by"]["step"] == 7
    run("report", tmp_path / "run", "--out", tmp_path / "page.html")
    page = html.unescape((tmp_path / "page.html").read_text())
    left = f"{advice['headroom_bits']:.1f} binades"
    assert f"which leaves {left} below overflow" in page
    assert f"least headroom {left} at the recommended" in page
    assert f"Over the steps with histograms; of all steps, step 7 leaves the least: {left}." in page
    assert re.findall(r"least headroom (\S+) binades", page) == [left.split()[0]]
