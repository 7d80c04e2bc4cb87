# SPDX-License-Identifier: Apache-2.0
"""What a recorder says while the run goes on: alert() and summary()."""

import subprocess
import warnings

import pytest

torch = pytest.importorskip("torch")

from program import PROGRAM, run  # noqa: E402
from small_runs import loss_of, small_network, train  # noqa: E402

import halfscope  # noqa: E402
from halfscope.torch import Recorder  # noqa: E402

BROKEN = (2, 3)  # steps


def break_at(recorder, parameter, steps=BROKEN):
    """NaN in one value of the gradient at these steps."""
    def hook(gradient):
        gradient = gradient.clone()
        if recorder.step in steps:
            gradient.view(-1)[0] = float("nan")
        return gradient

    parameter.register_hook(hook)


def run_with(tmp_path, when, do=None, steps=5, broken=BROKEN, **settings):
    """A run with an alert, and its warnings. The broken steps are not taken: weights stay finite."""
    model = small_network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    recorder = Recorder(model, optimizer, tmp_path / "run", **settings)
    break_at(recorder, model[3].weight, broken)
    recorder.alert(when=when, do=do)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        with recorder:
            for step in range(steps):
                optimizer.zero_grad()
                optimizer.param_groups[0]["lr"] = 0.0 if step in broken else 0.1
                recorder.loss(loss_of(model, step)).backward()
                optimizer.step()
                with torch.no_grad():
                    model[3].weight.nan_to_num_()
    return [w for w in said if "Recorder.alert" in str(w.message)]


def test_an_alert_warns_once(tmp_path):
    (said,) = run_with(tmp_path, "nan > 0 for weight_grad")
    assert said.category is RuntimeWarning
    assert str(said.message) == (
        "Recorder.alert('nan > 0 for weight_grad'): step 2: tensor 'weight_grad/3.weight': "
        "nan 1 > 0")
    assert said.filename == __file__  # where the loop calls the step


def test_an_alert_whose_condition_never_holds_says_nothing(tmp_path):
    assert not run_with(tmp_path, "nan > 0 for weight_grad", broken=())


def test_do_is_called_each_time_with_the_lines(tmp_path):
    calls = []
    assert not run_with(tmp_path, "nan > 0 for weight_grad", calls.append)
    assert calls == [[f"step {step}: tensor 'weight_grad/3.weight': nan 1 > 0"] for step in BROKEN]


def test_lines_are_those_of_fail_if(tmp_path):
    calls = []
    run_with(tmp_path, "max_abs >= 2^-40 for weight_grad", calls.append, steps=1, broken=())
    done = run("analyze", tmp_path / "run", "--fail-if", "max_abs >= 2^-40 for weight_grad",
               expect=4)
    start = f"halfscope: {tmp_path / 'run'}: "
    expected = [line[len(start):] for line in done.stderr.splitlines() if line.startswith(start)]
    assert len(expected) == 4
    assert calls == [[f"step 0: {line}" for line in expected]]


def test_it_looks_at_recorded_steps_alone(tmp_path):
    calls = []
    run_with(tmp_path, "nan > 0 for weight_grad", calls.append, every=3)
    assert [lines[0].partition(":")[0] for lines in calls] == ["step 3"]


def test_a_condition_on_the_log_counts_its_steps(tmp_path, stand_in_scaler):
    model, scaler = small_network(), stand_in_scaler()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    recorder, calls = Recorder(model, optimizer, tmp_path / "run", scaler=scaler), []
    break_at(recorder, model[0].weight, (1,))
    recorder.alert("skipped > 0", calls.append)
    with recorder:
        for step in range(3):
            optimizer.zero_grad()
            scaler.scale(loss_of(model, step)).backward()
            scaler.step(optimizer)
            scaler.update()
    assert [lines[0].partition(":")[0] for lines in calls] == ["step 1", "step 2"]
    assert all(len(lines) == 1 and "skipped 1 > 0" in lines[0] for lines in calls)


def test_do_may_end_the_run(tmp_path, read_log):
    class Enough(Exception):
        pass

    def do(lines):
        raise Enough(lines[0])

    with pytest.raises(Enough, match="step 2: tensor 'weight_grad/3.weight'"):
        run_with(tmp_path, "nan > 0 for weight_grad", do)
    assert sorted(read_log(tmp_path / "run").scalars) == [0, 1, 2]


@pytest.mark.parametrize("when", ["nan >", "flushed > 3", "static_scale > 3", "nan > x", "nan > 0 for"])
def test_a_wrong_condition_is_refused_at_once(tmp_path, when):
    model = small_network()
    recorder = Recorder(model, torch.optim.SGD(model.parameters(), lr=0.1), tmp_path / "run").start()
    with pytest.raises(ValueError) as refused:
        recorder.alert(when=when)
    recorder.stop()
    done = subprocess.run([PROGRAM, "analyze", tmp_path / "run", "--fail-if", when],
                          capture_output=True, text=True)
    assert done.stderr.splitlines()[-1] == f"halfscope: --fail-if: {refused.value}"


def losses_and_norms(steps, explode):
    """Of the run below, by plain PyTorch: the loss and the gradients' L2 norm of each step."""
    model = small_network()
    optimizer, found = torch.optim.SGD(model.parameters(), lr=0.1), []
    for step in range(steps):
        optimizer.zero_grad()
        loss = loss_of(model, step) * (explode if step == 3 else 1)
        loss.backward()
        found.append((loss.item(), torch.cat([p.grad.flatten() for p in model.parameters()]).norm().item()))
        optimizer.param_groups[0]["lr"] = 0.0 if step == 3 else 0.1
        optimizer.step()
    return found


def alerts_on_numbers(tmp_path, when, explode, steps=5, **settings):
    """The lines of an alert in a run whose loss explodes at step 3."""
    model = small_network()
    optimizer, lines = torch.optim.SGD(model.parameters(), lr=0.1), []
    recorder = Recorder(model, optimizer, tmp_path / "run", **settings)
    recorder.alert(when, lines.extend)
    with recorder:
        for step in range(steps):
            optimizer.zero_grad()
            recorder.loss(loss_of(model, step) * (explode if step == 3 else 1)).backward()
            optimizer.param_groups[0]["lr"] = 0.0 if step == 3 else 0.1
            optimizer.step()
    return lines


@pytest.mark.parametrize("every", [1, 100])
def test_an_alert_on_the_loss_looks_at_every_step(tmp_path, every):
    losses = [loss for loss, _ in losses_and_norms(5, 1e6)]
    (line,) = alerts_on_numbers(tmp_path, "loss > 100", 1e6, every=every)
    said, value = line.removesuffix(" > 100").rsplit(" ", 1)
    assert said == "step 3: loss" and float(value) == losses[3] and max(losses[:3] + losses[4:]) < 100


@pytest.mark.parametrize("explode, said", [(float("inf"), "loss inf > 1e30"), (float("nan"), "loss is NaN")])
def test_a_loss_that_is_no_number_is_told(tmp_path, explode, said):
    assert f"step 3: {said}" in alerts_on_numbers(tmp_path, "loss > 1e30", explode)


def test_an_alert_on_a_loss_that_nobody_notes_is_told_once(tmp_path):
    model = small_network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    recorder = Recorder(model, optimizer, tmp_path / "run")
    recorder.alert("loss > 100")
    with warnings.catch_warnings(record=True) as said, recorder:
        warnings.simplefilter("always")
        for step in range(3):
            loss_of(model, step).backward()
            optimizer.step()
    (one,) = said
    assert str(one.message) == ("Recorder.alert('loss > 100'): step 0 has no loss, so it is not tested; note the "
                                "loss with recorder.loss(loss)")
    assert one.filename == __file__


def test_an_alert_on_the_norm_of_gradients(tmp_path):
    """At recorded steps, without the loss scale and before clipping."""
    norms = [norm for _, norm in losses_and_norms(5, 1e6)]
    lines = alerts_on_numbers(tmp_path / "all", "grad_norm >= 0", 1e6)
    said = [float(line.removesuffix(" >= 0").rsplit(" ", 1)[1]) for line in lines]
    assert said == pytest.approx(norms, rel=1e-5)
    assert alerts_on_numbers(tmp_path / "some", "grad_norm >= 0", 1e6, every=2)[1].startswith("step 2: grad_norm ")
    (line, *_) = alerts_on_numbers(tmp_path / "nan", "grad_norm > 1e30", float("nan"))
    assert line == "step 3: grad_norm is NaN"


def test_the_norm_of_gradients_has_no_loss_scale(tmp_path, stand_in_scaler):
    model, scaler, lines = small_network(), stand_in_scaler(), []
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    recorder = Recorder(model, optimizer, tmp_path / "run", scaler=scaler)
    recorder.alert("grad_norm >= 0", lines.extend)
    with recorder:
        scaler.scale(loss_of(model, 0)).backward()
        scaler.step(optimizer)
        scaler.update()
    assert float(lines[0].split()[3]) == pytest.approx(losses_and_norms(1, 1)[0][1], rel=1e-5)


@pytest.mark.parametrize("when, why", [("loss > 3 for weight", "remove 'for'"), ("loss > 3%", "not a share")])
def test_a_condition_on_a_number_without_sense_is_refused(tmp_path, when, why):
    model = small_network()
    recorder = Recorder(model, torch.optim.SGD(model.parameters(), lr=0.1), tmp_path / "run")
    with pytest.raises(ValueError, match=why):
        recorder.alert(when)


def test_a_summary_is_the_text_of_recommend_so_far(tmp_path):
    model = small_network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with Recorder(model, optimizer, tmp_path / "run") as recorder:
        with pytest.raises(halfscope.BadInput, match="holds no tensor"):
            recorder.summary()
        for steps in (1, 3):
            train(model, optimizer, recorder, steps)
            said = recorder.summary()
            assert said == str(halfscope.recommend(tmp_path / "run"))
            done = run("recommend", tmp_path / "run")
            *program, more = done.stdout.splitlines()  # where to read on
            assert more.startswith("More: ")
            assert said.replace("* Nothing", "Nothing").splitlines() == program
    assert recorder.summary() == said
