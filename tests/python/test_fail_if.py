# SPDX-License-Identifier: Apache-2.0
"""--fail-if: exit codes, one line a violation on stderr, stdout as without it."""

import json
import subprocess

import numpy as np
import pytest
from safetensors.numpy import save_file

from program import DIGITS, PROGRAM, ROOT


def run(command, log, *conditions, expect=0, options=()):
    gates = [word for condition in conditions for word in ("--fail-if", condition)]
    done = subprocess.run(
        [PROGRAM, command, str(log), *options, *gates], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == expect, done.stderr
    return done.stdout, done.stderr


@pytest.fixture
def log(tmp_path):
    """1000 gradients of which one becomes zero; an activation of NaN alone."""
    values = np.ones(1000, np.float32)
    values[7] = 2.0**-30
    tensors = {"weight_grad/a": values, "activation/b": np.full(3, np.nan, np.float32)}
    save_file(tensors, tmp_path / "g.safetensors")
    return tmp_path / "g.safetensors"


def test_a_number_that_binary64_does_not_hold_is_an_error(log):
    for number in ("1e-400", "1e400"):
        _, err = run("analyze", log, f"max_abs > {number}", expect=2)
        assert f"number {number} is out of the range of binary64" in err


def test_one_in_a_thousand_is_not_more_than_a_tenth_of_a_percent(log):
    run("analyze", log, "flushed_to_zero > 0.1% for weight_grad")
    _, err = run("analyze", log, "flushed_to_zero >= 0.1% for weight_grad", expect=4)
    line = "tensor 'weight_grad/a': flushed_to_zero 1 of 1,000 (0.10 %) >= 0.1 %"
    assert err.splitlines()[-1] == f"halfscope: {log}: {line}"


def test_one_line_a_violation(log):
    _, err = run("analyze", log, "nan > 0", "total >= 3", expect=4)
    lines = [line for line in err.splitlines() if "tensor '" in line]
    assert [line.partition("': ")[2] for line in lines] == ["nan 3 > 0", "total 1,000 >= 3", "total 3 >= 3"]


def test_stdout_is_as_without_conditions(log, tmp_path):
    for command, condition in (("analyze", "nan > 0"), ("recommend", "static_scale > 0")):
        for options in ((), ("--json", "-")):
            wanted, _ = run(command, log, options=options)
            assert run(command, log, condition, expect=4, options=options)[0] == wanted != ""


def test_the_recorded_run_against_its_json():
    out, _ = run("analyze", DIGITS, options=("--json", "-"))
    over = [
        t["name"]
        for t in json.loads(out)["tensors"]
        if t["role"] == "activation_grad"
        and 100 * t["flushed_to_zero"] > t["total"] - t["zero"] - t["nan"] - t["inf"]
    ]
    assert over
    _, err = run("analyze", DIGITS, "flushed_to_zero > 1% for activation_grad", expect=4)
    assert [line.split("'")[1] for line in err.splitlines()] == over
    run("analyze", DIGITS, "nan > 0", "inf > 0", "max_abs >= 65520")


def test_recommendation(log):
    out, _ = run("recommend", DIGITS, options=("--json", "-"))
    advice = json.loads(out)
    run("recommend", DIGITS, f"static_scale != {advice['static_scale']}", f"headroom_bits != {advice['headroom_bits']}")
    _, err = run("recommend", DIGITS, f"highest <= {advice['highest']}", expect=4)
    assert err == f"halfscope: {DIGITS}: highest {advice['highest']:g} <= {advice['highest']}\n"
    share = advice["flushed_at_1"]
    _, err = run("recommend", DIGITS, "flushed_at_1 > 0%", expect=4)
    assert f"flushed_at_1 {share['count']:,} of {share['of']:,} (" in err


def test_a_recommendation_that_is_none_stops_the_pipeline(tmp_path):
    save_file({"weight_grad/a": np.zeros(4, np.float32)}, tmp_path / "z.safetensors")
    _, err = run("recommend", tmp_path / "z.safetensors", "static_scale < 8", expect=4)
    assert "static_scale has no value: 'static_scale < 8' is undecided" in err


def test_tensors_without_the_value_are_noted(log):
    _, err = run("analyze", log, "max_abs > 1")
    assert "tensor 'activation/b': no values to test 'max_abs > 1' on" in err
    out, err = run("analyze", log, "max_abs > 1 for activation", expect=2)
    assert out == "" and "none of its tensors has values to compute max_abs from" in err


BAD_USAGE = [
    ("analyze", "flushed > 1%", "min_abs_nonzero"),
    ("analyze", "nan", "FIELD OP NUMBER"),
    ("analyze", "nan > 0 for conv9/*", "no selected tensor is of role or name 'conv9/*'"),
    ("analyze", "max_abs > 1%", "not a share of anything"),
    ("recommend", "nan > 0", "flushed_at_recommended"),
    ("recommend", "lowest > 1 for weight_grad", "--tensor"),
]


@pytest.mark.parametrize(("command", "condition", "words"), BAD_USAGE)
def test_bad_conditions_exit_with_2(log, command, condition, words):
    out, err = run(command, log, condition, expect=2)
    assert out == "" and words in err and "--fail-if" in err


def dump(folder, outputs):
    """As msprobe writes it: a layer for each output, given what the one before has made."""
    def tensor(largest):
        return {"type": "torch.Tensor", "dtype": "torch.float16", "shape": [2, 4], "Max": largest, "Min": -0.5}
    nodes = {f"Module.l{i}.Linear.forward.0":
             {"input_args": [tensor(outputs[i - 1] if i else 1.0)], "input_kwargs": {}, "output": [tensor(made)]}
             for i, made in enumerate(outputs)}
    folder.mkdir(parents=True)
    (folder / "dump.json").write_text(json.dumps({"task": "statistics", "level": "L0", "dump_data_dir": None, "data": nodes}))
    return folder


def test_magnitudes_without_counts_are_tested_as_bounds(tmp_path):
    fine = dump(tmp_path / "step0" / "rank0", [2.0, 4.0])
    run("analyze", fine, "nan > 0", "inf > 0 for activation", "overflow > 0", "max_abs > 4", "state == broken",
        "nonfinite_since >= 0")
    bad = dump(tmp_path / "step1" / "rank0", [2.0, float("inf"), float("nan")])
    _, err = run("analyze", bad, "nan > 0", "inf > 0 for *l1*", "state == broken", "nonfinite_since == 1", expect=4)
    lines = [line.removeprefix(f"halfscope: {bad}: ") for line in err.splitlines() if " > 0" in line or " == " in line]
    assert lines == ["tensor 'Module.l2.Linear.forward.0.output.0': nan at least 1 > 0",
                     "tensor 'Module.l1.Linear.forward.0.output.0': inf at least 1 > 0",
                     "state broken == broken", "nonfinite_since 1 == 1"]
    _, err = run("analyze", bad, "nan > 5 for *l2*output*", expect=4)
    assert "nan at least 1 > 5 is undecided: only bounds are known" in err
    _, err = run("analyze", bad, "zero > 1", expect=2)
    assert "largest magnitudes only; use nan, inf, overflow, flushed_to_zero or max_abs" in err
    _, err = run("analyze", bad, "last_scale < 2", expect=2)
    assert "no log has a loss scale or skipped steps; use state or nonfinite_since" in err


def test_a_log_of_tensors_that_ends_in_nan_is_broken(tmp_path):
    save_file({"weight/a": np.full(3, np.nan, np.float32)}, tmp_path / "w.safetensors")
    run("analyze", tmp_path / "w.safetensors", "state == broken", expect=4)
    run("analyze", tmp_path / "w.safetensors", "state == collapsed")


def test_what_a_log_has_instead_is_said(tmp_path):
    line = "2026-01-13 12:00:00,123 - INFO - x.fc1_gradient_underflows% \t\t iteration={:06d} \t\t value=5.0000\n"
    (tmp_path / "te.log").write_text("".join(line.format(step) for step in range(9)))
    _, err = run("analyze", tmp_path / "te.log", "nan > 0", expect=2)
    assert "no values of tensors" in err and "use underflow_share" in err and "weight" not in err
    (tmp_path / "scalars.csv").write_text("step,loss,lr\n" + "".join(f"{s},2.5,0.1\n" for s in range(9)))
    _, err = run("analyze", tmp_path / "scalars.csv", "nan > 0", expect=2)
    assert "use a field of its scalars: state, " in err
    _, err = run("analyze", tmp_path / "scalars.csv", "underflow_share > 0", expect=2)
    assert "no log has statistics of FP8 or FP4" in err


@pytest.mark.parametrize("scale", [None, 1.0, 65536.0])
def test_the_gate_of_the_guide_passes_a_run_that_trains(scale, tmp_path):
    names = "step,loss" + ("" if scale is None else ",loss_scale")
    rows = "".join(f"{s},{5 - s / 100}" + ("" if scale is None else f",{scale}") + "\n" for s in range(100))
    (tmp_path / "train.csv").write_text(f"{names}\n{rows}")
    guide = (ROOT / "docs" / "gates.md").read_text().split("```yaml\n- name: The run still trains")[1].split("```")[0]
    conditions = [part.split("'")[0] for part in guide.split("--fail-if '")[1:]]
    assert conditions
    run("analyze", tmp_path / "train.csv", *conditions)
