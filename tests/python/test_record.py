# SPDX-License-Identifier: Apache-2.0
"""halfscope.torch.record: what it finds in a running program, and what it leaves behind."""

import copy
import gc
import weakref

import pytest

torch = pytest.importorskip("torch")

from small_runs import loss_of, require_same_log, small_network, train  # noqa: E402
from torch import nn  # noqa: E402

import halfscope  # noqa: E402
from halfscope.torch import Recorder, record  # noqa: E402

Scaler = getattr(torch.amp, "GradScaler", torch.cuda.amp.GradScaler)
PATCHED = [(torch.optim.Optimizer, "__init__"), (nn.Module, "__call__"), (torch.autograd, "backward"),
           (Scaler, "__init__"), (Scaler, "scale"), (Scaler, "unscale_"), (Scaler, "step"),
           (Recorder, "start"), (torch.cuda.CUDAGraph, "replay")]


class NoRecorder:
    """The recorder of a loop without one."""

    @staticmethod
    def loss(loss):
        return loss


def sgd(model):
    return torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)


def by_hand(folder, steps=3, **settings):
    model = small_network()
    optimizer = sgd(model)
    with Recorder(model, optimizer, folder, **settings) as recorder:
        train(model, optimizer, recorder, steps)


def test_a_module_that_cannot_be_hashed_trains_as_without_us(tmp_path):
    class Loss(nn.Module):
        __hash__ = None

        def forward(self, output):
            return output.square().mean()

    with record(tmp_path / "run"):
        model = small_network()
        optimizer = sgd(model)
        assert torch.isfinite(Loss()(torch.ones(2)))
        train(model, optimizer, NoRecorder, 2)
    assert halfscope.recommend(tmp_path / "run").static_scale


def test_it_leaves_nothing_behind(tmp_path):
    gc.collect()  # optimizers of other tests, which record() would find
    before = [getattr(owner, name) for owner, name in PATCHED]
    with record(tmp_path / "run") as recording:
        model = small_network()
        optimizer = sgd(model)
        assert nn.Module.__call__ is not before[1]
        train(model, optimizer, NoRecorder, 2)
        assert nn.Module.__call__ is before[1]  # each optimizer has a Recorder
    assert [getattr(owner, name) for owner, name in PATCHED] == before
    assert "step" not in vars(optimizer) and not model._forward_pre_hooks
    assert recording.folders == [str(tmp_path / "run")] and not recording.notes
    train(model, optimizer, NoRecorder, 1)
    assert recording.answer() == str(halfscope.recommend(tmp_path / "run"))


@pytest.mark.parametrize("made", ["before", "inside"])
def test_optimizers_that_exist_already_are_found(tmp_path, read_log, made):
    model = small_network()
    optimizer = sgd(model) if made == "before" else None
    with record(tmp_path / "run", every=2, sample_every=2):
        train(model, optimizer or sgd(model), NoRecorder, 3)
    by_hand(tmp_path / "hand", every=2, sample_every=2)
    require_same_log(read_log(tmp_path / "run"), read_log(tmp_path / "hand"))


def test_a_recorder_of_the_loop_is_left_alone(tmp_path):
    model = small_network()
    optimizer = sgd(model)
    with record(tmp_path / "run") as recording:
        with Recorder(model, optimizer, tmp_path / "own") as recorder:
            train(model, optimizer, recorder, 2)
    assert not recording.folders and recording.answer().startswith("nothing was recorded")
    assert len(list(tmp_path.glob("own/run.json"))) == 1


def test_trainings_one_after_the_other_are_freed(tmp_path):
    models = []
    with record(tmp_path / "run") as recording:
        for _ in range(3):
            model = small_network()
            train(model, sgd(model), NoRecorder, 2)
            models.append(weakref.ref(model))
            del model
            gc.collect()
        assert not any(model() for model in models) and not recording.recorders
    assert recording.folders == [str(tmp_path / "run" / name).rstrip("/") for name in (
        "", "optimizer-1", "optimizer-2")]


def test_only_one(tmp_path):
    models = [small_network(), small_network()]
    with record(tmp_path / "run", only_one=True) as recording:
        optimizers = [sgd(model) for model in models]
        for model, optimizer in zip(models, optimizers):
            train(model, optimizer, NoRecorder, 2)
    assert recording.folders == [str(tmp_path / "run")]
    assert recording.notes == ["optimizer 2 and later ones are not recorded"]


def test_a_copy_of_an_optimizer_that_waits_steps_by_itself(tmp_path):
    with record(tmp_path / "run"):
        optimizer = torch.optim.SGD([torch.ones(2, requires_grad=True)], lr=1.0)
        twin = copy.deepcopy(optimizer)
        twin.param_groups[0]["params"][0].grad = torch.ones(2)
        twin.step()
    assert twin.param_groups[0]["params"][0].tolist() == [0.0, 0.0]
    assert optimizer.param_groups[0]["params"][0].tolist() == [1.0, 1.0]


def test_steps_without_a_call_of_the_model(tmp_path, read_log):
    model = nn.Linear(3, 1)
    with record(tmp_path / "run", every=1) as recording:
        optimizer = sgd(model)
        for _ in range(3):
            model.forward(torch.ones(1, 3)).sum().backward()
            optimizer.step()
            optimizer.zero_grad()
    assert sorted(read_log(tmp_path / "run").scalars) == [0, 1]
    first, second = recording.notes  # and not a warning
    assert first == ("SGD of 2 parameters: its first step is not in the log, since no call of its model was "
                     "seen before")
    assert second.startswith("SGD of 2 parameters: two steps had backward passes, but no call of a module")


@pytest.mark.parametrize("case", ["no optimizer", "no step", "no module"])
def test_nothing_to_record_is_one_line(tmp_path, case):
    with record(tmp_path / "run") as recording:
        if case == "no step":
            model = small_network()
            optimizer = sgd(model)
        elif case == "no module":
            weight = torch.ones(2, requires_grad=True)
            optimizer = torch.optim.SGD([weight], lr=1.0)
            weight.sum().backward()
            optimizer.step()
    assert recording.answer().startswith("nothing was recorded: ") and "\n" not in recording.answer()
    assert {"no optimizer": "no PyTorch optimizer ", "no step": "no PyTorch optimizer stepped",
            "no module": "no module has them"}[case] in recording.answer()


class FixedScaler(Scaler):
    """A GradScaler that needs no GPU: its scale is fixed, and no step is skipped."""

    def __init__(self, scale):
        super().__init__(enabled=False)
        self._fixed = scale

    def is_enabled(self):
        return True

    def get_scale(self):
        return self._fixed

    def scale(self, outputs):
        return super().scale(outputs) * self._fixed

    def step(self, optimizer):
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                parameter.grad /= self._fixed
        return super().step(optimizer)


def train_scaled(model, optimizer, scaler):
    for step in range(2):
        optimizer.zero_grad()
        scaler.scale(loss_of(model, step)).backward()
        scaler.step(optimizer)
        scaler.update()


@pytest.mark.filterwarnings("ignore:.*GradScaler is enabled, but CUDA")
def test_each_optimizer_has_the_scaler_that_steps_it(tmp_path, read_log):
    """The scalers were made in the other order. The class has a scale() and a step() of its own."""
    with record(tmp_path / "run", every=1):
        first, second = FixedScaler(4.0), FixedScaler(64.0)
        models = [small_network(), small_network()]
        optimizers = [sgd(model) for model in models]
        train_scaled(models[0], optimizers[0], second)
        train_scaled(models[1], optimizers[1], first)
    for i, scale in enumerate([64.0, 4.0]):
        log = read_log(tmp_path / "run" / f"optimizer-{i}")
        assert [log.scalars[step]["loss_scale"] for step in (0, 1)] == [scale, scale]
        assert log.tables["weight_grad/0.weight", 0]["scale"] == scale


def test_a_folder_with_a_log_is_refused(tmp_path):
    by_hand(tmp_path / "run/optimizer-3", 1)
    with pytest.raises(halfscope.BadInput, match="holds a run log already"):
        record(tmp_path / "run").start()
    (tmp_path / "file").write_text("")
    with pytest.raises(halfscope.BadInput, match="is a file"):
        record(tmp_path / "file").start()
    with pytest.raises(TypeError, match="every"):
        record(tmp_path / "new", every=0)
    with pytest.raises(TypeError, match="unknown"):
        record(tmp_path / "new", unknown=1)
