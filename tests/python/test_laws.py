# SPDX-License-Identifier: Apache-2.0
"""Laws that answers obey on random logs. NumPy's rounding judges what FP16 makes of a value."""
import collections
import json
import math
import re
import subprocess
from fractions import Fraction

import numpy as np
import pytest

from halfscope import _halfscope
from program import PROGRAM

SCALES = range(-24, 41)  # log2 of the loss scales that are looked at
ROLES = ("weight", "activation", "weight_grad", "activation_grad", "local_weight_grad")
ROUNDED = ("flushed_to_zero", "subnormal", "normal", "overflow")
COUNTS = ("zero", "nan", "inf", *ROUNDED)
# Where rounding changes class: ties at 2^-25, of subnormals, at 65520; neighbours; the largest.
EDGES = np.array([2**23, 2**23 + 1, 3 * 2**22, 4095 * 2**12, 4095 * 2**12 - 1, 2**24 - 1])
pytestmark = pytest.mark.parametrize("seed", range(6))


def draw(random, count, middle):
    """Values about 2^middle, made of integers: the same on every machine. Some at edges or zero."""
    significands = np.where(random.integers(0, 4, count) == 0,
                            EDGES[random.integers(0, len(EDGES), count)],
                            random.integers(2**23, 2**24, count))
    significands *= 2 * random.integers(0, 2, count) - 1
    binades = middle - 12 + random.integers(0, 2, (24, count)).sum(axis=0)
    values = np.ldexp(significands.astype(np.float32), binades - 23)
    values[random.integers(0, 3, count) == 0] *= 0
    return values


def random_log(seed):
    """{step: {name: values}}. Odd seeds have infinities and NaN; seeds 2 and 3 lack steps, and
    tensors of steps. Gradients are below 1: an infinity near what FP16 holds may be FP16's."""
    random = np.random.default_rng(seed)
    broken, gaps = seed % 2, seed // 2 % 2
    middles = {f"{role}/{layer}": int(random.integers(-31, -12))
               for role in ROLES for layer in ("conv", "fc")}
    log, step = {}, int(random.integers(0, 3))
    for _ in range(int(random.integers(3, 7))):
        log[step] = {name: draw(random, 3 * int(random.integers(14, 40)), middle)
                     for name, middle in middles.items()}
        for name in list(middles)[:-2]:
            if gaps and random.integers(0, 6) == 0:
                del log[step][name]
            elif broken and "_grad/" in name and random.integers(0, 8) == 0:
                log[step][name][:3] = (np.nan, np.inf, np.nan, -np.inf)[random.integers(0, 4)]
        step += 1 + gaps * int(random.integers(0, 4))
    return log


def times(log, powers):
    """Gradients times 2^k, k of each step; exactly, or an error beyond FP32's range."""
    with np.errstate(under="raise", over="raise"):
        return {step: {n: np.ldexp(v, powers[step] if "_grad/" in n else 0)
                       for n, v in values.items()} for step, values in log.items()}


def write(folder, log, scales=None, **about):
    """The log as it is, in its order. scales: what the gradients of each step carry."""
    manifest = {"scaled": bool(scales), "rank": 0, "world_size": 1, "sharded": [], "about": {}}
    writer = _halfscope.RunLogWriter(str(folder), json.dumps({**manifest, **about}))
    for step, values in log.items():
        for name, array in values.items():
            table, mean, sum_squares, _ = _halfscope.measure(array)
            scaled = bool(scales) and "_grad/" in name
            gathered = _halfscope.Gathered.of(table, "F32", array.shape, mean, sum_squares)
            writer.write_tensors(step, [(name, gathered, scaled, scales[step] if scaled else 1.0)])
        unknown = "learning_rate loss_scale found_inf max_abs_weight_grad max_abs_activation_grad"
        writer.write_scalars(step=step, loss=1.0, more={}, **dict.fromkeys(unknown.split()))
    return folder


def printed(command, *arguments):
    return subprocess.run([PROGRAM, command, *map(str, arguments), "--json", "-"], check=True,
                          stdout=subprocess.PIPE, text=True).stdout


def rounded(number):
    """To 26 bits: FP32 values and scales have no more, sums and logarithms may end otherwise."""
    significand, exponent = math.frexp(float(number))
    return math.ldexp(round(significand * 2**26), exponent - 26)


def ask(command, *arguments):
    """The answer, in which every log is called LOG."""
    text = printed(command, *arguments)
    for argument in arguments:
        text = text.replace(f'"{argument}"', '"LOG"')
    return json.loads(text, parse_float=rounded)


def tensors(*arguments):
    return {t["name"]: t for t in ask("analyze", *arguments)["tensors"]}


def replayed(folder, *powers):
    return ask("policies", folder, "--assume-constant-between",
               *(f"--policy=static,scale=2^{k}" for k in powers))


def all_answers(folder):
    return tensors(folder, "--formats"), ask("recommend", folder), replayed(folder, 0, 30)


def names_no_rank(answers):
    """Without what names one of several ranks."""
    tensors, advice, *others = answers
    advice.pop("ranks_compared", None)
    advice["answer"]["findings"] = [finding for finding in advice["answer"]["findings"]
                                    if not re.search(r"\bRanks? \d", finding["title"])]
    return tensors, advice, *others


def added_up(*logs):
    """{name: counts and histograms over all logs}"""
    total = collections.defaultdict(collections.Counter)
    for tensor in ask("analyze", *logs)["tensors"]:
        of_name = total[tensor["name"]]
        of_name.update({**dict(tensor["binades"]), **{c: tensor[c] for c in ("total", *COUNTS)}})
        of_name.update({(s["log2_scale"], c): s[c] for s in tensor["by_scale"] for c in ROUNDED})
    return total


def scales_of(*logs):
    found = ask("recommend", "--target-underflow", 0.05, *logs)
    return found["highest"], found["lowest"]


def classes(values, log2_scale):
    """What FP16 makes of the values times 2^log2_scale; binary64 holds all of these products."""
    with np.errstate(over="ignore"):
        half = np.abs(np.ldexp(values.astype(np.float64), log2_scale).astype(np.float16))
    kept = half[np.isfinite(values) & (values != 0)]
    each = (values == 0, np.isnan(values), np.isinf(values), kept == 0,
            (kept > 0) & (kept < 2.0**-14), (kept >= 2.0**-14) & (kept < np.inf), kept == np.inf)
    return {name: int(those.sum()) for name, those in zip(COUNTS, each)}


def of_all_steps(log, part=""):
    names = {name for values in log.values() for name in values if part in name}
    return {name: np.concatenate([v[name] for v in log.values() if name in v]) for name in names}


def judge(log, headroom, target):
    """highest and lowest, from the rounding of every gradient at every scale."""
    gradients = of_all_steps(log, "_grad/").values()
    held = [k for k in SCALES if not any(classes(v, k + headroom)["overflow"] for v in gradients)]
    served = [k for k in SCALES if all(
        classes(v, k)["flushed_to_zero"] <= Fraction(target) * np.count_nonzero(v[np.isfinite(v)])
        for v in gradients)]
    return 2.0**max(held), 2.0**min(served)


def test_counts_are_those_of_numpy_and_add_up(tmp_path, seed):
    log = random_log(seed)
    found = tensors(write(tmp_path / "run", log), "--loss-scale", f"2^{seed}")
    for name, values in of_all_steps(log).items():
        tensor, counted = found[name], classes(values, seed)
        assert {c: tensor[c] for c in COUNTS} == counted, name
        assert tensor["total"] == sum(tensor[c] for c in COUNTS) == len(values)
        finite = np.abs(values[np.isfinite(values) & (values != 0)])
        assert [tensor["max_abs"], tensor["min_abs_nonzero"]] == [finite.max(), finite.min()]
        for k, scale in zip(SCALES, tensor["by_scale"], strict=True):
            assert scale.items() - classes(values, k).items() == {("log2_scale", k)}, name
        for step in tensor["per_step"]:
            assert {c: step[c] for c in COUNTS} == classes(log[step["step"]][name], seed)
        assert all(tensor[f] == sum(s[f] for s in tensor["per_step"]) for f in ("total", *COUNTS))


def test_scales_are_those_of_numpy(tmp_path, seed):
    log = random_log(seed)
    headroom, target = seed // 2, (0, 0.02, 0.1, 0.4)[seed % 4]
    found = ask("recommend", write(tmp_path / "run", log), "--headroom", headroom,
                "--target-underflow", target)
    assert (found["highest"], found["lowest"]) == judge(log, headroom, target)
    assert found["static_scale"] == found["highest"]
    for field, k in (("flushed_at_1", 0), ("flushed_at_recommended", np.log2(found["highest"]))):
        counted = [classes(v, int(k)) for v in of_all_steps(log, "_grad/").values()]
        assert found[field]["count"] == sum(c["flushed_to_zero"] for c in counted)


def test_a_static_scale_skips_the_steps_that_numpy_makes_infinite(tmp_path, seed):
    """A step that is missing is like the one before."""
    log, powers = random_log(seed), (0, 12, 18, 24, 30, 36)
    for k, trace in zip(powers, replayed(write(tmp_path / "run", log), *powers)):
        overflow, values = [], {}
        for step in range(min(log), max(log) + 1):
            values = log.get(step, values)
            counted = [classes(v, k) for n, v in values.items() if "_grad/" in n]
            if any(c["overflow"] + c["inf"] + c["nan"] for c in counted):
                overflow.append(step)
        assert trace["skipped"] == trace["overflow"] == overflow, k
        assert trace["unknown"] == trace["applied_nonfinite"] == []
        assert set(trace["scale"]) == {2.0**k}


def test_gradients_times_a_power_of_two_move_the_scales(tmp_path, seed):
    """highest ends at 2^40, lowest at 2^-24 and 2^40; no static_scale is below 2^-24."""
    log, k = random_log(seed), (-80, -6, 100, 5)[seed % 4]
    logs = write(tmp_path / "a", log), write(tmp_path / "b", times(log, dict.fromkeys(log, k)))
    before, after = (ask("recommend", x, "--target-underflow", 0.05) for x in logs)
    highest, lowest = before["highest"] * 2.0**-k, before["lowest"] * 2.0**-k
    assert before["highest"] < 2.0**40 and 2.0**-24 < before["lowest"] < 2.0**40
    assert after["highest"] == min(highest, 2.0**40)
    assert after["lowest"] == (None if lowest > 2.0**40 else max(lowest, 2.0**-24))
    assert after["static_scale"] == (after["highest"] if highest >= 2.0**-24 else None)
    before["limited_by"]["max_abs"] *= 2.0**k
    assert after["limited_by"] == before["limited_by"]
    before, after = map(tensors, logs)
    for name in (n for n in before if "_grad/" in n):
        assert after[name]["max_abs"] == before[name]["max_abs"] * 2.0**k
        assert after[name]["binades"] == [[e + k, n] for e, n in before[name]["binades"]]
        moved = {s.pop("log2_scale") - k: s for s in before[name]["by_scale"]}
        at = {s.pop("log2_scale"): s for s in after[name]["by_scale"]}
        assert all(at[scale] == moved[scale] for scale in at.keys() & moved.keys()), name


def test_counts_at_another_scale_hold_those_of_numpy(tmp_path, seed):
    log = random_log(seed)
    scales = {step: (0.7, 3.0, 1000.0)[(seed + step) % 3] for step in log}
    truth = {step: {n: v / np.float64(scales[step] if "_grad/" in n else 1)
                    for n, v in values.items()} for step, values in log.items()}
    folder, values = write(tmp_path / "run", log, scales), of_all_steps(truth)
    for name, tensor in tensors(folder, "--loss-scale", f"2^{seed}").items():
        for counts, k in [(tensor, seed)] + [(s, s["log2_scale"]) for s in tensor["by_scale"]]:
            for field, count in classes(values[name], k).items():
                low, high = np.broadcast_to(counts.get(field, count), 2)
                assert low <= count <= high, (name, k, field)
    found, (highest, lowest) = ask("recommend", folder), judge(truth, 1, 0.001)
    assert found["highest"] == highest and lowest <= found["lowest"] <= 2 * lowest


def test_ranks_may_change_places_and_add_up(tmp_path, seed):
    log = random_log(seed)
    whole = write(tmp_path / "whole", log)
    for run, order in (("a", (0, 1, 2)), ("b", (2, 0, 1))):
        for rank, part in enumerate(order):
            shard = {step: {n: np.split(v, 3)[part] if n[:7] != "weight/" else v
                            for n, v in values.items()} for step, values in log.items()}
            write(tmp_path / f"{run}/rank-{rank:04d}", shard, rank=rank, world_size=3,
                  sharded=ROLES[1:])
    assert names_no_rank(all_answers(tmp_path / "b")) == names_no_rank(all_answers(tmp_path / "a"))
    assert added_up(tmp_path / "a") == added_up(whole)
    assert scales_of(tmp_path / "a") == scales_of(whole)


@pytest.mark.parametrize("cut", ["steps", "tensors"])
def test_two_logs_add_up_to_one(tmp_path, seed, cut):
    """Of steps, `lowest` of the whole may be the smaller: shares are means of those of halves."""
    log = random_log(seed)
    middle = sorted(log)[len(log) // 2]

    def part(first):
        return {step: {n: v for n, v in values.items() if cut == "steps" or ("conv" in n) == first}
                for step, values in log.items() if cut == "tensors" or (step < middle) == first}
    whole = write(tmp_path / "whole", log)
    halves = [write(tmp_path / name, part(name == "a")) for name in "ab"]
    for half, steps in zip(halves, (f"0:{middle}", f"{middle}:{max(log) + 1}")):
        for command in ("analyze", "recommend") if cut == "steps" else ():
            assert ask(command, whole, "--step", steps) == ask(command, half)
    assert added_up(*halves) == added_up(whole)
    highest, lowest = zip(*map(scales_of, halves))
    assert scales_of(*halves) == (min(highest), max(lowest))
    of_whole = scales_of(whole)
    assert of_whole[0] == min(highest) and of_whole[1] <= max(lowest)
    assert of_whole[1] == max(lowest) or cut == "steps"


def rewritten(log, seed, how):
    """The log otherwise, and the scales that its gradients carry."""
    if how == "negated":
        return {s: {n: -v for n, v in values.items()} for s, values in log.items()}, None
    if how == "reordered":
        names = np.random.default_rng(seed).permutation(sorted(of_all_steps(log)))
        return {s: {n: log[s][n] for n in names if n in log[s]} for s in reversed(log)}, None
    # Infinities at scales above 1 may be FP16's: those of broken logs are below.
    powers = {step: (-40 if seed % 2 else -10) + (seed * 5 + step * 3) % 40 for step in log}
    return times(log, powers), {step: 2.0**k for step, k in powers.items()}


@pytest.mark.parametrize("how", ["negated", "reordered", "scaled"])
def test_answers_are_those_of_the_log(tmp_path, seed, how):
    log = random_log(seed)
    answers = [all_answers(write(tmp_path / "a", log)),
               all_answers(write(tmp_path / "b", *rewritten(log, seed, how)))]
    for _, advice, _ in answers:
        for event in advice["overflow_events"]:
            event.pop("loss_scale", None)  # what the values carried
        if how == "reordered":  # the order of records is evidence of that of computation
            for field in ("keep_in_fp32", "overflow_events", "nan_in_model"):
                advice.pop(field, None)
    assert answers[1] == answers[0]


def test_threads_do_not_matter(tmp_path, seed):
    logs = [write(tmp_path / name, random_log(seed + i)) for i, name in enumerate("ab")]
    for command in ("analyze --formats", "recommend", "policies --assume-constant-between"):
        assert len({printed(*command.split(), *logs, "--threads", n) for n in (1, 2)}) == 1
