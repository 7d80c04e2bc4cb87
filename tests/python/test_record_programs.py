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


@pytest.mark.filterwarnings("error")
def test_no_warning_reaches_the_program(tmp_path):
    """Warnings are errors here; the first step has gradients that are not recorded."""
    torch.manual_seed(1)
    model, more = nn.Linear(3, 2), nn.Linear(2, 1)
    with record(tmp_path / "run", every=1) as recording:
        optimizer = sgd(model)
        more(model(torch.ones(1, 3))).sum().backward()
        optimizer.add_param_group({"params": more.parameters()})
        optimizer.step()
    assert recording.recorders[0].step == 1
    assert recording.notes[0].startswith("SGD of 4 parameters: step 0 uses 2 gradients that are not recorded")


@pytest.mark.filterwarnings("ignore:.*[Ll]azy")
def test_lazy_parameters(tmp_path, read_log):
    with record(tmp_path / "run", every=1) as recording:
        model = nn.Sequential(nn.LazyLinear(4), nn.ReLU(), nn.LazyLinear(1))
        optimizer = sgd(model)
        for _ in range(3):
            optimizer.zero_grad()
            model(torch.ones(2, 3)).sum().backward()
            optimizer.step()
    log = read_log(tmp_path / "run")
    assert sorted(log.scalars) == [0, 1] and ("activation/0", 1) in log.tables
    assert "its first step is not in the log" in recording.notes[0]


def test_optimizers_after_the_most_cost_nothing(tmp_path, monkeypatch):
    with record(tmp_path / "run", only_one=True) as recording:
        model = small_network()
        train(model, sgd(model), NoRecorder, 1)
        called = nn.Module.__call__
        monkeypatch.setattr("gc.collect", lambda: pytest.fail("collects"))
        optimizer = sgd(model)
        assert nn.Module.__call__ is called and "step" not in vars(optimizer)
    assert recording.notes == ["optimizer 2 and later ones are not recorded"]


class Outer(torch.optim.SGD):
    """Steps by another optimizer, as SAM does: its own step() is never called."""

    def __init__(self, parameters):
        super().__init__(parameters, lr=0.1)
        self.inner = torch.optim.Adam(self.param_groups)


def test_an_optimizer_that_never_steps_has_no_log(tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run/notes").write_text("of the user")
    with record(tmp_path / "run") as recording:
        model = small_network()
        outer = Outer(model.parameters())
        train(model, outer.inner, NoRecorder, 2)
    assert recording.folders == [str(tmp_path / "run/optimizer-1")] and "no answer" not in recording.answer()
    assert (tmp_path / "run/notes").exists() and not (tmp_path / "run/optimizer-0").exists()
    assert recording.notes == ["Outer of 4 parameters: took no step, so it is not recorded"]


@pytest.mark.parametrize("scheduled", [False, True])
def test_a_step_that_the_program_kept(tmp_path, read_log, scheduled):
    with record(tmp_path / "run", every=1):
        model = small_network()
        optimizer = sgd(model)
        step = optimizer.step
        schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1) if scheduled else None
        before = model[0].weight.detach().clone()
        for i in range(2):
            optimizer.zero_grad()
            loss_of(model, i).backward()
            (optimizer.step if scheduled and i else step)()
        after = model[0].weight.detach().clone()
        weight_grad = model[0].weight.grad
    assert schedule is None or schedule.last_epoch == 0
    log = read_log(tmp_path / "run")
    assert sorted(log.scalars) == [0, 1] and ("weight_grad/0.weight", 1) in log.tables
    twin = small_network()
    train(twin, sgd(twin), NoRecorder, 2)
    assert torch.equal(after, twin[0].weight) and not torch.equal(after, before)
    assert torch.equal(weight_grad, twin[0].weight.grad)
