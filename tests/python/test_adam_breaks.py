# SPDX-License-Identifier: Apache-2.0
"""A run in FP16 that PyTorch's default eps of Adam breaks: the answer begins with it, and with an eps that
FP16 holds there is no such answer. PyTorch itself shows which of the two trains."""
import json
import math

import pytest

from program import json_of

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

from halfscope.torch import Recorder  # noqa: E402


class Adam(torch.optim.Adam):
    """torch.optim.Adam as its kernels for FP16 compute it, which PyTorch 1.13 has on a GPU alone: each
    result is rounded to FP16."""

    @torch.no_grad()
    def step(self, closure=None):
        (group,) = self.param_groups
        beta1, beta2 = group["betas"]
        eps = torch.tensor(group["eps"]).half().float()
        for p in group["params"]:
            state, g = self.state[p], p.grad.float()
            if not state:
                state.update(step=torch.tensor(0.0), exp_avg=torch.zeros_like(p), exp_avg_sq=torch.zeros_like(p))
            state["step"] += 1
            m, v, t = state["exp_avg"], state["exp_avg_sq"], state["step"].item()
            m.copy_((m.float() * beta1).half().float() + (1 - beta1) * g)
            v.copy_((v.float() * beta2).half().float() + (1 - beta2) * g * g)
            root = (v.float().sqrt().half().float() / math.sqrt(1 - beta2**t)).half().float()
            p.copy_(p.float() - group["lr"] / (1 - beta1**t) * m.float() / (root + eps).half().float())


Adam.__module__ = "torch.optim.adam"  # the name by which a log knows PyTorch's


class Half(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(32, 48).half(), nn.Linear(48, 4).half()

    def forward(self, x):
        # PyTorch 1.13 has no products of FP16 on a CPU.
        for layer in (self.first, self.second):
            x = nn.functional.linear(torch.relu(x), layer.weight.float(), layer.bias.float()).half().float()
        return x


def train(out, eps, **settings):
    """The last loss."""
    torch.manual_seed(0)
    x, y = torch.randn(64, 32), torch.randint(0, 4, (64,))
    model = Half()
    optimizer = Adam(model.parameters(), lr=1e-3, eps=eps)
    with Recorder(model, optimizer, out, **settings) as recorder:
        for _ in range(12):
            optimizer.zero_grad()
            loss = recorder.loss(nn.functional.cross_entropy(model(x), y))
            loss.backward()
            optimizer.step()
    return loss.item()


@pytest.mark.parametrize("settings", [{"every": 1, "sample_every": 5}, {"every": 1}, {"every": 5}])
def test_the_eps_that_is_zero_comes_before_the_nan(settings, tmp_path):
    assert math.isnan(train(tmp_path / "run", 1e-8, **settings))
    found = json_of("recommend", tmp_path / "run")
    answer = found["answer"]
    assert answer["headline"].startswith("Adam divides by 0: its eps of 1e-08 is 0 in FP16")
    assert "set eps to 0.0001 or more" in answer["action"]
    said = json.dumps(answer)
    assert "look for the first NaN" not in said  # it was found
    assert "too large for FP16" not in said      # the weights never were
    (state,) = found["adam_state"]
    assert state["broken_from"] == settings["every"]
    (state,) = json_of("analyze", tmp_path / "run")["adam_state"]
    assert state["broken_from"] == settings["every"]


def test_an_eps_that_fp16_holds_trains(tmp_path):
    assert train(tmp_path / "run", 1e-4, every=1, sample_every=5) < 1.2  # it begins at 1.39
    found = json_of("recommend", tmp_path / "run")
    assert "divides by 0" not in json.dumps(found["answer"])
    assert all("broken_from" not in state for state in found["adam_state"])


def test_nan_of_the_data_is_not_laid_to_eps(tmp_path):
    torch.manual_seed(0)
    model = Half()
    optimizer = Adam(model.parameters(), lr=1e-3, eps=1e-4)
    with Recorder(model, optimizer, tmp_path / "run", every=1) as recorder:
        for step in range(6):
            x = torch.randn(16, 32)
            if step == 3:
                x[0] = math.nan
            optimizer.zero_grad()
            recorder.loss(nn.functional.cross_entropy(model(x), torch.randint(0, 4, (16,)))).backward()
            optimizer.step()
    # The same log of an optimizer whose eps is 0 in FP16: the first NaN is in the gradients of step 3.
    manifest = tmp_path / "run" / "run.json"
    manifest.write_text(manifest.read_text().replace('"eps": 0.0001', '"eps": 1e-08'))
    assert '1e-08' in manifest.read_text()
    answer = json_of("recommend", tmp_path / "run")["answer"]
    assert "Adam divides by 0" not in json.dumps(answer)
