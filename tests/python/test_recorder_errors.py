# SPDX-License-Identifier: Apache-2.0
"""A recorder that fails never ends the training run: one warning, and the log until then."""

import errno
import gc
import os
import pathlib
import random
import resource
import shutil
import signal
import subprocess
import sys
import time
import warnings

import pytest

torch = pytest.importorskip("torch")

from program import PROGRAM  # noqa: E402
from small_runs import loss_of, require_same_log, small_network, train  # noqa: E402

import halfscope  # noqa: E402
from halfscope.torch import Recorder  # noqa: E402
from halfscope.torch.guard import Hook  # noqa: E402

STEPS = 6


def trained(recorder_of):
    """The weights after a run, and its warnings of the recorder."""
    model = small_network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        with recorder_of(model, optimizer) as recorder:
            train(model, optimizer, recorder, STEPS)
    assert not any(isinstance(hook, Hook) for module in model.modules()
                   for hook in (*module._forward_hooks.values(), *module._forward_pre_hooks.values()))
    assert "step" not in vars(optimizer)
    stops = [str(w.message) for w in said if "recording stops" in str(w.message)]
    return [p.detach().clone() for p in model.parameters()], stops


def test_a_step_that_raises_leaves_no_tensors(tmp_path, read_log):
    """All tensors of a step are written together, behind it."""
    model = small_network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    steps = []

    def step(*_, **__):
        if len(steps) == 2:
            raise RuntimeError("out of memory")
        steps.append(None)

    optimizer.step = step
    with pytest.raises(RuntimeError, match="out of memory"), \
            Recorder(model, optimizer, tmp_path / "run") as recorder:
        train(model, optimizer, recorder, STEPS)
    log = read_log(tmp_path / "run")
    assert sorted(log.scalars) == sorted({step for _, step in log.tables}) == [0, 1]


class NoRecorder:
    def __init__(self, *_):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def loss(self, loss):
        return loss


def require_trained(recorder_of, text):
    weights, stops = trained(recorder_of)
    assert len(stops) == 1 and text in stops[0]
    expected, _ = trained(NoRecorder)
    assert all(torch.equal(a, b) for a, b in zip(weights, expected))


def test_a_full_disk(tmp_path, read_log):
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, limits[1]))
    try:
        require_trained(lambda m, o: Recorder(m, o, tmp_path / "run"), os.strerror(errno.EFBIG))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)
    log = read_log(tmp_path / "run")
    assert 1 <= len(log.scalars) < STEPS


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write to every folder")
def test_a_folder_that_is_read_only(tmp_path):
    tmp_path.chmod(0o555)
    require_trained(lambda m, o: Recorder(m, o, tmp_path / "run"), "cannot make this folder")


def test_a_folder_that_cannot_be_made():
    require_trained(lambda m, o: Recorder(m, o, "/proc/halfscope/run"), "cannot make this folder")


class Odd(torch.Tensor):
    """A subclass whose values cannot be read."""

    def detach(self):
        raise NotImplementedError("values of Odd cannot be read")


@pytest.mark.parametrize("every", [1, 3])
def test_a_tensor_that_cannot_be_read(tmp_path, read_log, every):
    def of(model, optimizer):
        model[1].register_forward_hook(
            lambda module, inputs, output: output.as_subclass(Odd) if recorder.step == 3 else output)
        recorder = Recorder(model, optimizer, tmp_path / "run", every=every)
        return recorder

    model = small_network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with pytest.warns(RuntimeWarning, match="NotImplementedError: values of Odd cannot be read"):
        with of(model, optimizer) as recorder:
            for step in range(STEPS):
                optimizer.zero_grad()
                loss_of(model, step).as_subclass(torch.Tensor).backward()
                optimizer.step()
    assert sorted(read_log(tmp_path / "run").scalars) == [0, 1, 2]


def test_a_loss_that_cannot_be_read(tmp_path):
    class NotesOdd:
        def __init__(self, recorder):
            self._recorder = recorder

        def __enter__(self):
            self._recorder.start()
            return self

        def __exit__(self, *_):
            self._recorder.stop()

        def loss(self, loss):
            self._recorder.loss(loss.detach().as_subclass(Odd))
            return loss

    require_trained(lambda m, o: NotesOdd(Recorder(m, o, tmp_path / "run")),
                    "values of Odd cannot be read")


def test_it_is_raised_where_that_is_wanted(tmp_path):
    with pytest.raises(halfscope.BadInput, match="cannot make this folder"):
        trained(lambda m, o: Recorder(m, o, "/proc/halfscope/run", on_error="raise"))
    with pytest.raises(ValueError, match="on_error"):
        trained(lambda m, o: Recorder(m, o, tmp_path / "run", on_error="no"))


def test_what_the_loop_raises_is_not_ours(tmp_path):
    def of(model, optimizer):
        model.register_forward_hook(lambda *_: 1 / 0)
        return Recorder(model, optimizer, tmp_path / "run")

    with pytest.raises(ZeroDivisionError):
        trained(of)


def test_one_that_was_never_started_warns_and_keeps_nothing(tmp_path):
    model = small_network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    recorder = Recorder(model, optimizer, tmp_path / "run")
    with pytest.warns(RuntimeWarning, match="never started") as said:
        train(model, optimizer, recorder, 3)
    assert len(said) == 1 and not recorder.losses.noted and not (tmp_path / "run").exists()
    other = Recorder(model, optimizer, tmp_path / "other")
    with pytest.warns(RuntimeWarning, match="never started"):
        del other
        gc.collect()  # its parts know each other


def moved(folder):
    folder.rename(folder.with_name("moved"))


def deleted(folder):
    shutil.rmtree(folder)


def deleted_and_made_again(folder):
    shutil.rmtree(folder)
    folder.mkdir()


def without_manifest(folder):
    (folder / "run.json").unlink()


@pytest.mark.parametrize("settings", [{"every": 1}, {"every": 100}, {"sample_every": 1},
                                      {"every": 100, "sample_every": 100}])
@pytest.mark.parametrize("lose", [moved, deleted, deleted_and_made_again, without_manifest])
def test_a_folder_that_is_gone_ends_the_recording(tmp_path, lose, settings):
    """At the step that follows; nothing is written beside it."""
    model = small_network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    out = tmp_path / "run"
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        with Recorder(model, optimizer, out, **settings) as recorder:
            train(model, optimizer, recorder, 2)
            lose(out)
            before = sorted(tmp_path.rglob("*"))
            train(model, optimizer, recorder, 30)
            assert sorted(tmp_path.rglob("*")) == before
    stops = [str(w.message) for w in said if "recording stops" in str(w.message)]
    assert len(stops) == 1 and "deleted or moved" in stops[0] and str(out) in stops[0]


def without_samples(folder):
    shutil.rmtree(folder / "tensors")


def cut_to_nothing(folder):
    for file in folder.glob("*tfevents*"):
        os.truncate(file, 0)


@pytest.mark.parametrize("lose, said_of_it", [
    (without_samples, "tensors: is gone, so the log was deleted or moved"),
    (cut_to_nothing, "has 0 bytes of the ")])
def test_a_part_of_a_log_that_is_gone_ends_the_recording(tmp_path, lose, said_of_it):
    """At the step that follows, once."""
    model = small_network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    out = tmp_path / "run"
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        with Recorder(model, optimizer, out, every=1, sample_every=100) as recorder:
            train(model, optimizer, recorder, 2)
            lose(out)
            before = {path: path.stat().st_size for path in out.rglob("*")}
            train(model, optimizer, recorder, 30)
            assert {path: path.stat().st_size for path in out.rglob("*")} == before
    stops = [str(w.message) for w in said if "recording stops" in str(w.message)]
    assert len(stops) == 1 and said_of_it in stops[0] and str(out) in stops[0]


def test_a_loop_that_changes_its_folder_keeps_its_log(tmp_path, monkeypatch, read_log):
    monkeypatch.chdir(tmp_path)
    model = small_network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    (tmp_path / "elsewhere").mkdir()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with Recorder(model, optimizer, "run", sample_every=1) as recorder:
            train(model, optimizer, recorder, 2)
            monkeypatch.chdir(tmp_path / "elsewhere")
            train(model, optimizer, recorder, 2)
    assert sorted(read_log(tmp_path / "run").scalars) == [0, 1, 2, 3]
    assert len(list((tmp_path / "run" / "tensors").iterdir())) == 4
    assert not list((tmp_path / "elsewhere").iterdir())


SCRIPT = """
import torch
from halfscope.torch import Recorder
from small_runs import loss_of, small_network
torch.set_num_threads(1)
model = small_network()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
print("here", flush=True)
with Recorder(model, optimizer, "run", sample_every=3) as recorder:
    for step in range(10 ** 6):
        optimizer.zero_grad()
        recorder.loss(loss_of(model, step % 10)).backward()
        optimizer.step()
"""


def test_a_run_that_is_killed_leaves_a_log_that_can_be_read(tmp_path):
    """Eight runs, killed at random moments."""
    chance = random.Random(1)
    tests = str(pathlib.Path(__file__).resolve().parent)
    paths = os.pathsep.join([tests, os.environ.get("PYTHONPATH", "")])
    readable = 0
    for number in range(8):
        folder = tmp_path / str(number)
        folder.mkdir()
        run = subprocess.Popen([sys.executable, "-c", SCRIPT], cwd=folder, stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL, env={**os.environ, "PYTHONPATH": paths})
        assert run.stdout.readline() == b"here\n"
        time.sleep(chance.uniform(0, 0.6) if number else 0)
        run.kill()
        run.wait()
        done = subprocess.run([PROGRAM, "analyze", str(folder / "run")], capture_output=True, text=True)
        if done.returncode == 0:
            readable += 1
        else:
            lines = done.stderr.splitlines()
            assert len(lines) == 1 and lines[0].startswith("halfscope: "), done.stderr
        assert done.returncode in (0, 1), done.stderr
        assert not [name for name in os.listdir(folder / "run" if (folder / "run").exists() else folder)
                    if name.endswith(".partial")]
    assert readable >= 4


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_process_that_is_forked_does_not_write_into_the_log(tmp_path, read_log):
    """It trains on, with a warning. Its parent's log is that of a run without it."""
    for name in ("alone", "forked"):
        model = small_network()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        with Recorder(model, optimizer, tmp_path / name) as recorder:
            train(model, optimizer, recorder, 2)
            if name == "forked" and os.fork() == 0:
                steps_in_a_fork(optimizer, tmp_path / "child")
            train(model, optimizer, recorder, 2)
    if os.wait()[1]:
        raise AssertionError((tmp_path / "child").read_text())
    require_same_log(read_log(tmp_path / "forked"), read_log(tmp_path / "alone"))


def steps_in_a_fork(optimizer, error):
    try:
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            optimizer.zero_grad()
            optimizer.step()  # a backward pass may hang in a fork: PyTorch's threads are not there
        assert ["is a fork of the one that records" in str(w.message) for w in said] == [True]
        assert "step" not in vars(optimizer)
        os._exit(0)
    except BaseException as raised:
        error.write_text(repr(raised))
    finally:
        os._exit(1)


def test_an_optimizer_of_another_model_is_refused(tmp_path):
    model, other = torch.nn.Linear(3, 3), torch.nn.Linear(3, 3)
    with pytest.raises(ValueError, match="none of its parameters is the model's"):
        Recorder(model, torch.optim.SGD(other.parameters(), 0.1), tmp_path / "run")
    assert not (tmp_path / "run").exists()
    head = torch.optim.SGD([*other.parameters(), model.bias], 0.1)  # a part of the model suffices
    Recorder(model, head, tmp_path / "head").start().stop()
    masters = [p.detach().float().clone() for p in model.half().parameters()]
    Recorder(model, torch.optim.SGD(masters, 0.1), tmp_path / "masters").start().stop()


@pytest.mark.filterwarnings("error")
def test_a_recorder_that_was_not_made_says_one_error(capfd):
    model = torch.nn.Linear(3, 3)
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'out'"):
        Recorder(model, torch.optim.SGD(model.parameters(), 0.1))
    gc.collect()
    assert capfd.readouterr().err == ""
