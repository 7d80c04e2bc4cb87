# SPDX-License-Identifier: Apache-2.0
"""What is said of logs without tensors: no more than their lines show, and each cause once."""
import json
import math

import pytest

from printed_runs import FORMS, NAN, deepspeed, megatron, run_of, runs
from program import json_of, run, words_of

UNKNOWN = "The cause is unknown"


def quiet(steps):
    return [0.3 + 0.1 * math.sin(n) for n in range(steps)]


def timeline(log):
    [found] = json_of("analyze", log)["timeline"]
    return found


def written(folder, lines):
    path = folder / "train.log"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_steps_after_the_last_counter_have_no_number(tmp_path):
    run = run_of(quiet(981) + [NAN] * 18, "broken", scale=2.0 ** 17, window=1000)
    found = timeline(written(tmp_path, deepspeed(run, every=100)))
    assert (found["state"], found["last"], found["collapsed_since"]) == ("broken", 900, 901)
    assert found["skipped_in_vain"] == {"first": 901, "skipped": 18}
    text = words_of("analyze", tmp_path / "train.log")
    assert "The log ends with 18 skipped steps" in text and "come after step 900" in text
    assert "collapsed from 131072 (2^17) to 1 after step 900." in text
    assert "no update was applied" not in text and "from step 901" not in text
    assert UNKNOWN not in text


def restarted():
    """A log of a resumed run, which is restarted without its scaler's state."""
    run = run_of(quiet(1000), "normal", scale=2.0 ** 29, window=1000, restart=501)
    return list(megatron(run, every=1))[100:]


def test_a_fall_back_from_a_new_start_is_no_collapse(tmp_path):
    log = written(tmp_path, restarted())
    assert timeline(log)["state"] == "normal" and "collapsed_since" not in timeline(log)
    run("analyze", log, "--fail-if", "state == collapsed", "--fail-if", "collapsed_since >= 0")
    text = words_of("analyze", log)
    assert "was not restored at resume" in text and "--no-load-optim" in text
    assert "state_dict" not in text and "collapsed" not in text and UNKNOWN not in text
    assert "Start a dynamic loss scale at 131072" in words_of("recommend", log)


def test_a_fall_beyond_the_level_before_a_new_start_is_a_collapse(tmp_path):
    lines = [line for line in restarted() if " number of " in line]
    last = lines[-1]
    lines += [last.replace("    1000/", f"    {step}/").replace("131072.0", f"{2.0 ** (1017 - step)}")
              for step in range(1001, 1030)]
    assert timeline(written(tmp_path, lines))["state"] == "collapsed"


@pytest.mark.parametrize("scale, state", [(2.0 ** 32, "slow_start"), (2.0 ** 17, "normal")])
def test_a_slow_start_within_the_first_line(tmp_path, scale, state):
    log = written(tmp_path, megatron(run_of(quiet(3000), state, scale=scale, window=1000), every=100))
    assert timeline(log)["state"] == state
    started = "15 of them at the start, up to step 100" in words_of("analyze", log)
    assert started == (state == "slow_start")


@pytest.mark.parametrize("form", ["DeepSpeed ZeRO", "Megatron-LM", "fairseq"])
@pytest.mark.parametrize("kind", ["slow start", "restarted", "collapsed", "NaN"])
def test_a_cause_is_said_once(tmp_path, form, kind):
    log = written(tmp_path, FORMS[form](runs()[kind]))
    text = words_of("analyze", log)
    assert UNKNOWN not in text
    advice = "A scale of 1 or less scales nothing, so the scale is not the cause"
    for command in ("analyze", "recommend"):
        assert words_of(command, log).count(advice) == (kind == "collapsed")


def test_recommend_gives_the_true_reason(tmp_path):
    clean = run_of(quiet(900), "normal", scale=128.0, window=10 ** 9)
    for run, says in ((clean, "Keep the loss scale of 128 (2^7)."),
                      (runs()["collapsed"], "No loss scale is recommended: the scale is not the cause."),
                      (runs()["without a scale"], "")):
        log = written(tmp_path, FORMS["fairseq"](run))
        text = words_of("recommend", log)
        assert says in text and "No loss scale can be recommended" not in text
        answer = json_of("recommend", log)["answer"]
        assert answer.get("scale", "") == says
        assert "never fell" not in text and "it stays" not in text


def test_a_scale_is_said_from_where_it_is_known(tmp_path):
    log = written(tmp_path, deepspeed(run_of(quiet(2500), "normal", scale=2.0 ** 17, window=1000)))
    text = words_of("analyze", log)
    assert "Loss scale: 262144 (2^18) at step 1001, 131072 (2^17) at last" in text


def trainer(step, loss, norm):
    return {"loss": loss, "grad_norm": norm, "learning_rate": 1e-5, "epoch": step / 1000}


def test_what_hugging_face_prints_of_nan(tmp_path):
    entries = [trainer(n, 0.0 if n > 20 else 2.0, NAN if n > 20 else 1.0) for n in range(30)]
    note = "the loss is 0 in 9 entries whose gradient norm is NaN or infinite, first at "
    log = written(tmp_path, map(str, entries))
    assert note + "entry 21: the Trainer logs 0" in words_of("analyze", log)
    state = tmp_path / "trainer_state.json"
    state.write_text(json.dumps({"global_step": 30, "log_history": [
        entry | {"step": n} for n, entry in enumerate(entries)]}))
    assert note + "step 21: the Trainer logs 0" in run("analyze", state).stderr
    assert "logs 0" not in run("analyze", written(tmp_path, map(str, entries[:20]))).stderr


def test_few_steps_are_named_and_what_is_missing_once(tmp_path):
    def said(broken):
        return words_of("analyze", written(tmp_path, (
            str(trainer(n, 2.0, NAN if n in broken else 1.0)) for n in range(30))))
    assert "infinite at entries 3 and 9. Later ones are finite" in said({3, 9})
    assert "infinite at entries 3, 7 and 9. Later" in said({3, 7, 9})
    assert "infinite from entry 3 to 9, at 4 printed entries." in said({3, 4, 7, 9})
    assert said({3}).count("no skipped step") == 1
    assert "no skipped step" not in said(set())
    assert said(set()).count("neither a loss scale nor skipped steps") == 1
