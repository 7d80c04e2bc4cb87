# SPDX-License-Identifier: Apache-2.0
"""What is answered to runs of six kinds, printed as each framework prints them: docs/logs.md has the
table of states, and it is what is expected here."""
import re
import subprocess

import pytest

import printed_runs
from program import PROGRAM, ROOT, json_of, run, stdout_of, words_of


def documented():
    """(form, kind) -> state; "-" where nothing is printed that could be read."""
    rows = [[cell.strip() for cell in line.strip("|\n").split("|")]
            for line in (ROOT / "docs/logs.md").read_text().splitlines()
            if line.startswith("| ") and line.count("|") == 8]
    [kinds] = [row[1:] for row in rows if row[0] == "printed by"]
    found = {}
    for form, *states in rows:
        if form in printed_runs.FORMS:
            found.update({(form, kind): state.strip("`") for kind, state in zip(kinds, states)})
    return found


STATES = documented()


def run_for(form, kind):
    return printed_runs.runs(least=0.0 if form == "Apex amp" else 1.0)[kind]


def written(folder, form, kind):
    log = folder / "train.log"
    log.write_text("\n".join(printed_runs.FORMS[form](run_for(form, kind))) + "\n")
    return log


def test_the_table_has_every_form_and_kind():
    assert set(STATES) == {(form, kind) for form in printed_runs.FORMS
                           for kind in printed_runs.runs()}


FIRST = {"normal": "The loss scale is normal", "not_needed": "No loss scale is in use",
         "slow_start": "", "collapsed": "The loss scale collapsed", "broken": "", "unknown": ""}


# The framework's own lines, where the form tells whose log it is.
LINES = {"DeepSpeed ZeRO": '"initial_scale_power": 17', "DeepSpeed fused": '"initial_scale_power": 17',
         "Megatron-LM": "--initial-loss-scale 131072", "Apex amp": "amp.initialize",
         "Apex FP16_Optimizer": "amp.initialize", "fairseq": "--fp16-init-scale 131072",
         "fairseq, JSON": "--fp16-init-scale 131072", "PaddleNLP": "init_loss_scaling=131072.0",
         "MindSpore": "init_loss_scale=131072.0", "NeMo": "fp16_initial_loss_scale=131072.0",
         "fairseq2": "fp16_loss_scale: [131072.0, 0.0001]"}


@pytest.mark.parametrize("form, kind", sorted(STATES), ids=lambda text: text.replace(" ", "-"))
def test_a_printed_run_is_answered_rightly(tmp_path, form, kind):
    log, run, state = written(tmp_path, form, kind), run_for(form, kind), STATES[form, kind]
    if state == "-":
        assert "text without any line that Halfscope knows" in subprocess.run([PROGRAM, "analyze", log], capture_output=True,
                                             text=True).stderr
        return
    assert state in (run.state, "unknown") or (run.state, state) in (
        ("not_needed", "normal"), ("broken", "collapsed"))
    [timeline] = json_of("analyze", log)["timeline"]
    assert timeline["state"] == state
    text = words_of("recommend", log)
    anew = kind == "restarted" and "was not restored at resume" in text
    assert text.startswith("The loss scale jumped" if anew else FIRST[state])
    # This form ends with the last skipped step: nothing shows that the scale after it held.
    ends_falling = kind == "slow start" and form == "Apex FP16_Optimizer"
    if state == "slow_start" and form not in ("Colossal-AI", "Apex FP16_Optimizer"):
        assert "it starts too high. Start it at 131072 (2^17)" in text
    if state == "broken":
        assert "no loss scale cures" in text or form == "Apex amp"
    if anew:
        assert re.search(r"from 131072 \(2\^17\) to (16777216|8388608) \(2\^2[34]\), where the run began", text)
    settles = kind in ("healthy", "slow start", "restarted") and state != "unknown" and not ends_falling
    tells_scale = form != "Colossal-AI"
    says_where = settles and tells_scale and kind != "slow start"  # a slow start has said it
    assert ("Start a dynamic loss scale at 131072 (2^17)" in text) == says_where
    lines = stdout_of("recommend", log, "--framework", "pytorch")
    assert ("init_scale=131072.0" in lines) == (settles and tells_scale)
    assert (LINES.get(form, "") in text) or not settles
    alarm = state in ("collapsed", "broken")
    stdout_of("analyze", log, "--fail-if", "state == collapsed", "--fail-if", "state == broken",
              expect=4 if alarm else 0)


def skipped_steps(run, until):
    return sum(step.skipped for step in run.steps if step.number <= until)


@pytest.mark.parametrize("form", ["DeepSpeed ZeRO", "DeepSpeed fused", "Megatron-LM", "fairseq"])
def test_counts_and_gates(tmp_path, form):
    log, run = written(tmp_path, form, "slow start"), run_for(form, "slow start")
    [timeline] = json_of("analyze", log)["timeline"]
    last = timeline["last"]
    count = skipped_steps(run, last)
    assert timeline["skipped"] == count
    share = count / last
    assert timeline["skipped_share"] == pytest.approx(share, rel=1e-12)
    for limit, code in ((share * 100 - 0.01, 4), (share * 100 + 0.01, 0)):
        stdout_of("analyze", log, "--fail-if", f"skipped_share > {limit:.4f}%", expect=code)
    stdout_of("recommend", log, "--fail-if", "last_scale < 65536")
    stdout_of("recommend", log, "--fail-if", "last_scale < 2^18", "--fail-if",
              "collapsed_since >= 0", expect=4)


def test_a_gate_on_steps_that_never_come_passes(tmp_path):
    log = written(tmp_path, "Megatron-LM", "healthy")
    stdout_of("analyze", log, "--fail-if", "collapsed_since >= 0", "--fail-if",
              "nonfinite_since >= 0")
    broken = written(tmp_path, "Megatron-LM", "NaN")
    stdout_of("analyze", broken, "--fail-if", "nonfinite_since >= 0", expect=4)


def replayed(log, *policies):
    arguments = [part for policy in policies for part in ("--policy", policy)]
    return json_of("policies", log, *arguments)


@pytest.mark.parametrize("form", ["DeepSpeed fused", "DeepSpeed ZeRO"])
def test_policies_are_replayed_as_far_as_the_scale_tells(tmp_path, form):
    log, run = written(tmp_path, form, "healthy"), run_for(form, "healthy")
    count = skipped_steps(run, 1000)
    low, high = replayed(log, "static,scale=2^16", "static,scale=2^19")
    # Every step that was applied was clean at 2^17 or above, and of the others nobody knows.
    assert low["skipped"] == [] and len(low["unknown"]) <= count + 110
    assert len(high["skipped"]) == count
    assert len(high["skipped"]) + len(high["unknown"]) == 1000
    words = words_of("policies", log)
    assert "No dynamic settings are searched, since the log has no gradients" in words


def test_policies_say_what_is_missing(tmp_path):
    log = written(tmp_path, "Apex FP16_Optimizer", "healthy")
    done = run("policies", log, expect=1)
    assert re.search("does not tell which steps were skipped at which loss scale", done.stderr)
