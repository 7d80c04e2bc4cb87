# SPDX-License-Identifier: Apache-2.0
"""`halfscope policies`: known answers through the command line, its JSON, and what it refuses."""
import ast
import functools
import json

import pytest

import halfscope
from halfscope import _halfscope
from program import DIGITS, ROOT, run, valid_json_of

S1 = json.loads((ROOT / "tests/policy/s1.json").read_text(encoding="utf-8"))
S1_AMAX = [float("nan") if x is None else x for x in S1["amax"]]
NAMES = ("static torch apex apex-legacy apex-hysteresis megatron colossalai deepspeed "
         "deepspeed-fused fairseq metaseq fastai1 fastai2 tf1 keras2 keras3 tf-contrib "
         "os2s-backoff os2s-logmax nnabla nnabla-tutorial chainer mxnet mxnet-static jmp flax "
         "paddle mindspore mindspore-cell nvcaffe als te-delayed").split()
policies = functools.partial(run, "policies")
traces = functools.partial(valid_json_of, "policies")


@pytest.fixture
def s1(tmp_path):
    path = tmp_path / "s1.txt"
    path.write_text("".join(f"{'nan' if x is None else x}\n" for x in S1["amax"]))
    return path


def write(tmp_path, *lines):
    path = tmp_path / "amax.txt"
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


def test_known_answer_by_the_names_that_every_policy_understands(s1):
    of = {t["policy"]: t for t in S1["traces"] if set(t["settings"]) == {"growth_interval",
                                                                        "initial_scale"}}
    assert len(of) > 10
    given = [x for name in of for x in ("--policy",
                                        f"{name},growth_interval=4,initial_scale=2^16")]
    for found in traces("--amax", s1, *given):
        known = of[found["policy"]]
        assert found["scale"] == known["scale"], found["policy"]
        assert found["skipped"] == known["skipped"], found["policy"]
        assert found["overflow"] == known["overflow"], found["policy"]
        assert found["attempts"] == known["attempts"], found["policy"]
        assert found["final"] == known["final"], found["policy"]


def test_every_policy_of_the_list_replays_a_plain_series(s1):
    listed = json.loads(policies("--list", "--json", "-").stdout)
    assert sorted(p["policy"] for p in listed) == sorted(NAMES)
    found = traces("--amax", s1)
    assert [t["policy"] for t in found] == [p["policy"] for p in listed]
    unavailable = {t["policy"] for t in found if "unavailable" in t}
    assert unavailable == {"als"}
    for trace in found:
        if "unavailable" not in trace and not trace["error"]:
            assert len(trace["scale"]) == len(trace["attempts"]) == 40


def test_the_list_tells_defaults_and_source():
    text = policies("--list").stdout
    for name in NAMES:
        assert f"\n{name}: " in "\n" + text
    assert "init_scale=65536,growth_factor=2,backoff_factor=0.5,growth_interval=2000" in text
    assert text.count("source: ") == len(NAMES)


def test_steps_where_no_gradient_is_nonzero_are_steps(tmp_path):
    [trace] = traces("--amax", write(tmp_path, 0, 0, 1, 0), "--policy", "torch,growth_interval=2")
    assert trace["scale"] == [65536, 65536, 131072, 65536]
    assert trace["skipped"] == [2]


def test_an_infinite_scale_is_no_number(tmp_path):
    path = write(tmp_path, *[0] * 300)
    [trace] = traces("--amax", path, "--policy", "keras3,growth_interval=1")
    assert trace["final"] is None
    assert trace["final_text"] == "inf"
    assert trace["fate"] == "infinity"
    assert trace["scale"][-1] is None


def test_nan_that_no_scale_cures_is_told_apart(tmp_path):
    [trace] = traces("--amax", write(tmp_path, 1e-3, "nan", "inf", 1e-3), "--policy", "torch")
    assert trace["skipped"] == [1, 2]
    assert trace["skipped_in_model"] == 2


@pytest.mark.parametrize("line, found", [("-1", "-1"), ("large", "large"), ("1e-3 2", "1e-3 2"),
                                         ("0x10", "0x10"), ("", "empty"),
                                         ("3\0garbage", "garbage")])
def test_a_bad_magnitude_is_named_with_its_line(tmp_path, line, found):
    path = write(tmp_path, 1, 2, line, 3)
    message = policies("--amax", path, "--policy", "torch", expect=1).stderr
    assert "line 3" in message
    assert found in message
    assert str(path) in message


def test_an_empty_series_is_refused(tmp_path):
    assert "is empty, expected one" in policies("--amax", write(tmp_path), expect=1).stderr


def test_a_missing_file_is_named(tmp_path):
    assert "nowhere.txt" in policies("--amax", tmp_path / "nowhere.txt", expect=1).stderr


@pytest.mark.parametrize("text, wanted", [
    ("torhc", "torch, apex"),
    ("torch,growth=2", "init_scale, growth_factor, backoff_factor, growth_interval"),
    ("torch,growth_interval=0", "an integer, 1 or above"),
    ("torch,growth_interval=2.5", "an integer, 1 or above"),
    ("torch,init_scale=nan", "a finite number above 0"),
    ("torch,init_scale=1e300", "a number of binary32's range"),
    ("torch,init_scale=1,init_scale=2", "given twice"),
    ("torch,init_scale", "key=value"),
])
def test_what_policy_is_not_known_lists_what_is(s1, text, wanted):
    message = policies("--amax", s1, "--policy", text, expect=2).stderr
    assert wanted in message
    assert "--list" in message


def test_the_series_is_not_overwritten(s1):
    before = s1.read_bytes()
    policies("--amax", s1, "--json", s1, expect=2)
    assert s1.read_bytes() == before


@pytest.mark.parametrize("option", [("--step", "0:3"), ("--recorded-scale", "2"),
                                    ("--assume-constant-between",)])
def test_what_is_of_logs_is_refused_for_a_series(s1, option):
    assert option[0] in policies("--amax", s1, *option, expect=2).stderr


def test_log_and_series_and_list_exclude_each_other(s1):
    policies(expect=2)
    policies(DIGITS, "--amax", s1, expect=2)
    policies("--list", "--amax", s1, expect=2)


def test_a_log_is_replayed_with_its_tables():
    found = {t["policy"]: t for t in traces(DIGITS)}
    torch = found["torch"]
    assert torch["log"] == str(DIGITS)
    assert len(torch["scale"]) > 900
    low, high = torch["mean_flushed_share"]
    assert 0 <= low <= high < 0.1
    static = found["static"]
    assert static["mean_flushed_share"][0] >= low  # 128 flushes more than 65536


def test_flushed_shares_are_those_of_recommend_at_one_scale():
    advice = halfscope.recommend(DIGITS)
    [trace] = halfscope.policies(DIGITS, policies="static,scale=1")
    shares = [s["flushed_to_zero"] for s in
              halfscope.analyze(DIGITS, steps=trace["worst_flushed_step"])["tensors"]
              if s["role"] in ("weight_grad", "activation_grad")]
    assert advice["flushed_at_1"]["count"] > 0
    of = sum(s["flushed_to_zero"] + s["subnormal"] + s["normal"] + s["overflow"] for s in
             halfscope.analyze(DIGITS, steps=trace["worst_flushed_step"])["tensors"]
             if s["role"] in ("weight_grad", "activation_grad"))
    assert trace["worst_flushed_share"][0] == pytest.approx(sum(shares) / of, rel=1e-12)


def scalars_log(folder, steps, scale=lambda step: 1.0, about=None):
    """A run log of scalars alone."""
    writer = _halfscope.RunLogWriter(folder, json.dumps(
        {"scaled": False, "rank": 0, "world_size": 1, "sharded": [], "about": about or {}}))
    for step in steps:
        writer.write_scalars(step=step, loss=1.0, learning_rate=0.1, loss_scale=scale(step),
                             found_inf=False,
                             max_abs_weight_grad=1e-3, max_abs_activation_grad=2e-3, more={})
    return folder


def test_missing_steps_are_refused_or_assumed(tmp_path):
    log = scalars_log(tmp_path / "run", [0, 1, 5, 6])
    message = policies(log, expect=1).stderr
    assert "holds step 1 and then step 5" in message
    assert "--assume-constant-between" in message
    [found] = traces(log, "--assume-constant-between", "--policy", "torch")
    assert len(found["scale"]) == 7


def test_the_run_is_checked_from_its_first_step_alone(tmp_path):
    """Inside a run the state of its policy is not known: no difference may be told."""
    about = {"loss_scaling": {"policy": "torch", "init_scale": 4, "growth_interval": 3}}
    log = scalars_log(tmp_path / "run", range(9), lambda step: 4.0 * 2 ** (step // 3), about)
    recorded = [t for t in traces(log) if t["policy"] == "recorded"]
    assert recorded[0]["replay"]["equal"]
    assert recorded[0]["replay"]["steps"] == 9
    assert "traps" not in recorded[0]
    recorded = [t for t in traces(log, "--step", "4:9") if t["policy"] == "recorded"]
    assert "replay" not in recorded[0]


def test_python_gives_what_the_command_line_gives(s1):
    mine = halfscope.policies(DIGITS, policies=["torch", "megatron,growth_interval=100"])
    theirs = traces(DIGITS, "--policy", "torch", "--policy", "megatron,growth_interval=100")
    assert [t["scale"] for t in mine] == [t["scale"] for t in theirs]
    with pytest.raises(ValueError, match="torch, apex"):
        halfscope.policies(DIGITS, policies=["torhc"])


def test_python_and_the_command_line_have_the_same_entries():
    mine = halfscope.policies(DIGITS, framework="deepspeed,hysteresis=3")
    theirs = traces(DIGITS, "--framework", "deepspeed,hysteresis=3")
    assert mine == theirs
    [tuned] = [t["tuned"] for t in mine if "tuned" in t]
    assert tuned["policy"] == "deepspeed"
    assert tuned["settings"]["delayed_shift"] == 3


def test_tuning_starts_from_the_settings_of_the_user(s1):
    def tuned(*arguments):
        [trace] = traces("--amax", s1, *arguments)
        return trace["tuned"]["settings"]
    torch = "torch,init_scale=1e6,backoff_factor=0.25"
    assert tuned("--policy", torch)["backoff_factor"] == 0.25
    assert tuned("--policy", torch, "--framework", "pytorch")["backoff_factor"] == 0.25
    assert tuned("--policy", torch, "--framework", "torch,backoff_factor=0.5,init_scale=1e6")[
        "backoff_factor"] == 0.5
    text = policies("--amax", s1, "--framework", "deepspeed,initial_scale_power=20").stdout
    assert '"hysteresis": 2' in text


def test_what_stops_every_setting_is_said(tmp_path):
    path = write(tmp_path, *[1e6] * 60)
    text = " ".join(policies("--amax", path, "--framework", "keras2").stdout.split())
    assert ("60 steps need a scale of 2^-4 or less, but it cannot fall below 1, which no setting "
            "lowers.") in text
    assert "need a scale" not in policies("--amax", path, "--framework", "pytorch").stdout.split(
        "Policies with their")[0]


def lines_to_paste(s1, framework):
    [tuned] = [t["tuned"] for t in traces("--amax", s1, "--framework", framework) if "tuned" in t]
    text = policies("--amax", s1, "--framework", framework).stdout
    paste = tuned.get("paste")
    shown = paste["lines"] if paste else tuned["text"]
    assert "\n".join("  " + line for line in shown.splitlines()) in text
    assert ("In Halfscope's notation (--policy)" in text) == (paste is None)
    return paste


FLAGS, FILES = {"megatron", "fairseq", "metaseq"}, {"deepspeed", "deepspeed-fused"}
NOT_SEARCHED = "static mxnet-static chainer os2s-logmax nvcaffe als te-delayed".split()


@pytest.mark.parametrize("framework", sorted(set(NAMES) - set(NOT_SEARCHED)) + ["fastai"])
def test_settings_can_be_pasted(s1, framework):
    paste = lines_to_paste(s1, framework)
    if framework == "apex-hysteresis":
        assert paste is None
    elif framework in FLAGS:
        assert paste["lines"].startswith("--fp16 --")
    elif framework in FILES:
        assert json.loads("{" + paste["lines"] + "}")["fp16"]["loss_scale"] == 0
    elif framework == "os2s-backoff":
        assert ast.literal_eval("{" + paste["lines"] + "}")["loss_scaling"] == "Backoff"
    else:
        ast.parse(paste["lines"])


def test_each_framework_has_its_own_line(s1):
    assert lines_to_paste(s1, "FastAI")["lines"].startswith("learn = learn.to_fp16(init_scale=")
    assert lines_to_paste(s1, "PyTorch")["lines"].startswith('scaler = torch.amp.GradScaler("cuda", ')
    [tuned] = [t["tuned"] for t in halfscope.policies(amax=S1_AMAX, framework="fastai")
               if "tuned" in t]
    assert tuned["paste"]["where"] == "fastai"


@pytest.mark.parametrize("framework", NOT_SEARCHED)
def test_why_nothing_is_searched_is_said(s1, framework, caplog):
    wanted = f"No dynamic settings are searched for {framework}: "
    assert wanted in policies("--amax", s1, "--framework", framework).stdout
    assert wanted in policies("--amax", s1, "--framework", framework, "--json", "-").stderr
    halfscope.policies(amax=S1_AMAX, framework=framework)
    assert wanted in caplog.text


def test_an_unknown_framework_is_told_as_one(s1):
    said = policies("--amax", s1, "--framework", "jaxx", expect=2).stderr
    assert "--framework: policy 'jaxx' is unknown; did you mean jax" in said
    assert "--policy:" not in said
    assert "keras for keras3" in said


def test_a_series_in_memory_is_one_in_a_file(s1):
    mine = halfscope.policies(amax=S1_AMAX, policies="torch,growth_interval=4")
    theirs = traces("--amax", s1, "--policy", "torch,growth_interval=4")
    assert mine == theirs
    with pytest.raises(TypeError, match="amax=\\[...\\]"):
        halfscope.policies([1.0, 2.0])
    with pytest.raises(ValueError, match="negative"):
        halfscope.policies(amax=[1.0, -1.0])
    with pytest.raises(ValueError, match="is empty"):
        halfscope.policies(amax=[])
    with pytest.raises(ValueError, match="need a log"):
        halfscope.policies(amax=[1.0], steps=3)


def test_python_refuses_what_the_command_line_refuses(tmp_path):
    for name, value in (("target_underflow", 2), ("target_underflow", float("nan")),
                        ("headroom", 41), ("headroom", -1)):
        with pytest.raises(ValueError, match=name):
            halfscope.policies(DIGITS, **{name: value})
        with pytest.raises(ValueError, match=name):
            halfscope.recommend(DIGITS, **{name: value})
    scalars_log(tmp_path, [0, 1, 5])
    with pytest.raises(halfscope.BadInput) as refused:
        halfscope.policies(tmp_path)
    assert "assume_constant_between=True" in str(refused.value)
    assert "steps=slice(first, end)" in str(refused.value)
    assert "--" not in str(refused.value)


def test_the_legend_is_of_no_other_run(tmp_path):
    """No numbers in it that read like facts; what is advised is a row of its own."""
    text = policies("--amax", write(tmp_path, *[1.0] * 50, "inf", *[1.0] * 50)).stdout
    assert "0 to 9 skipped" not in text
    rows = text.split("  policy ")[1].splitlines()[1:]
    marked = [row.split("  ")[1] for row in rows if row.endswith("  <-")]
    assert marked[0] == "recommended static scale" and marked[1].startswith("best found: torch")
    assert not any("best found" in row for row in rows[2:])


def test_the_answer_comes_first(s1):
    text = policies(DIGITS).stdout
    answer = text.index("The run itself: 0 of 901 steps skipped")
    assert "flushes a mean of 17.0 % of its gradients" in " ".join(text.split())  # the run did not
    assert answer < text.index('scaler = torch.amp.GradScaler("cuda", init_scale=') < text.index("lost")
    assert "what a policy does to the weights is not simulated" in text
    assert max(map(len, text.splitlines())) <= 180


def test_a_run_without_loss_scaling_had_scale_1_and_applied_its_infinities(tmp_path):
    about = {"loss_scaling": {"policy": "none"}}
    writer = _halfscope.RunLogWriter(str(tmp_path), json.dumps(
        {"scaled": False, "rank": 0, "world_size": 1, "sharded": [], "about": about}))
    for step, largest in enumerate([1e-3, 1e-3, float("inf")]):
        writer.write_scalars(step=step, loss=1.0, learning_rate=0.1, loss_scale=None,
                             found_inf=False, max_abs_weight_grad=largest,
                             max_abs_activation_grad=largest, more={})
    del writer
    recorded = {t["policy"]: t for t in traces(tmp_path)}["recorded"]
    assert recorded["scale"] == [1, 1, 1]
    assert recorded["skipped"] == []
    assert recorded["applied_nonfinite"] == [2]
    text = " ".join(policies(tmp_path, "--policy", "torch").stdout.split())
    assert "the run itself: Infinities or NaN go into the weights at 1 step, step 2 first" in text
