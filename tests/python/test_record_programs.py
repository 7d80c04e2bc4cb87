# SPDX-License-Identifier: Apache-2.0
"""halfscope.torch.record: programs that freeze, save, compile or recompute their models."""

import copy
import io

import pytest

torch = pytest.importorskip("torch")

from small_runs import loss_of, require_same_log, small_network, train  # noqa: E402
from test_record import NoRecorder, sgd  # noqa: E402
from torch import nn  # noqa: E402
from torch.utils.checkpoint import checkpoint  # noqa: E402

from halfscope.torch import Recorder, record  # noqa: E402


@pytest.mark.filterwarnings("ignore:.*deprecated")
def test_a_recorded_model_and_its_copy_can_be_scripted(tmp_path):
    with record(tmp_path / "run", every=1) as recording:
        model = small_network()
        optimizer = sgd(model)
        train(model, optimizer, NoRecorder, 1)
        for one in (model, copy.deepcopy(model)):
            scripted = torch.jit.script(one)
        train(model, optimizer, NoRecorder, 1)
        x = torch.ones(1, 1, 8, 8)
        assert scripted(x).shape == model(x).shape
        assert model._forward_pre_hooks and model[0]._forward_hooks
    assert recording.recorders[0].step == 2 and not recording.notes


@pytest.mark.parametrize("copied", [False, True])
def test_a_saved_model_does_not_need_halfscope(tmp_path, copied):
    file = io.BytesIO()
    with record(tmp_path / "run"):
        model = small_network()
        train(model, sgd(model), NoRecorder, 1)
        torch.save(copy.deepcopy(model) if copied else model, file)
    assert b"halfscope" not in file.getvalue()
    file.seek(0)
    settings = {"weights_only": False} if torch.__version__ >= "2" else {}
    loaded = torch.load(file, **settings)
    assert torch.equal(loaded(torch.ones(1, 1, 8, 8)), model(torch.ones(1, 1, 8, 8)))


class Adversaries:
    """A generator, and two discriminators that are frozen while the generator learns."""

    def __init__(self):
        torch.manual_seed(2)
        self.generator, self.judges = nn.Linear(4, 4), nn.ModuleList([nn.Linear(4, 1), nn.Linear(4, 1)])
        judged = [*self.judges[0].parameters(), *self.judges[1].parameters()]
        self.optimizers = [torch.optim.Adam(self.generator.parameters()), torch.optim.Adam(judged)]

    def train(self, losses):
        for _ in range(2):
            made = self.generator(torch.ones(2, 4))
            for i, inputs in ((0, made), (1, made.detach())):
                self.judges.requires_grad_(i == 1)
                self.optimizers[i].zero_grad()
                losses[i](sum(judge(inputs).square().mean() for judge in self.judges)).backward()
                self.optimizers[i].step()


def test_parameters_that_are_frozen_at_the_first_call(tmp_path, read_log):
    with record(tmp_path / "run", every=1):
        Adversaries().train([lambda loss: loss] * 2)
    by_hand = Adversaries()
    with Recorder(by_hand.generator, by_hand.optimizers[0], tmp_path / "hand-0") as first:
        with Recorder(by_hand.judges, by_hand.optimizers[1], tmp_path / "hand-1") as second:
            by_hand.train([first.loss, second.loss])
    for i in (0, 1):
        require_same_log(read_log(tmp_path / f"run/optimizer-{i}"), read_log(tmp_path / f"hand-{i}"))


def test_a_loss_inside_a_checkpoint_counts_once(tmp_path, read_log):
    with record(tmp_path / "run", every=1):
        model = small_network()
        optimizer = sgd(model)
        x = torch.ones(2, 1, 8, 8, requires_grad=True)
        loss = checkpoint(lambda x: model(x).square().mean(), x, use_reentrant=True)
        loss.backward()
        optimizer.step()
    assert read_log(tmp_path / "run").scalars[0]["loss"] == loss.item()
