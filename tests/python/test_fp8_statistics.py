# SPDX-License-Identifier: Apache-2.0
"""Transformer Engine's statistics of FP8: what the program says of them, by a plain recomputation from the same lines."""

import json
import random
import re
import statistics

import pytest

from program import json_of, run, valid_json_of, words_of

LIMITS = (0.5, 1, 2, 4)  # percent
HALF = 0.00005  # half a unit of a printed number's last digit


def line(name, step, text):
    return f"2026-01-13 12:00:00,123 - INFO - {name} \t\t\t\t iteration={step:06d} \t\t\t\t value={text}\n"


def random_log(seed, steps, layers=9):
    """(name, step, printed value) in the order of a run; some shares are 0.0000, some at a limit."""
    dice = random.Random(seed)
    rows = []
    for step in steps:
        for layer in range(layers):
            for kind, level in (("activation", 0.1), ("weight", 0.01), ("gradient", 0.3 * layer)):
                name = f"model.layers.{layer}.mlp.fc1_{kind}"
                share = min(100, level * dice.lognormvariate(0, 1))
                text = dice.choice([f"{share:.4f}"] * 6 + ["0.0000", "2.0000", "1.9999"])
                rows.append((f"{name}_underflows%", step, text))
                scale = dice.lognormvariate(-4, 2)
                rows.append((f"{name}_scale_inv_min", step, f"{scale:.4f}"))
                rows.append((f"{name}_scale_inv_max", step, f"{2 * scale:.4f}"))
                rows.append((f"{name}_mse", step, f"{scale**2:.4f}"))
    return rows


def write(path, rows):
    path.write_text("".join(line(*row) for row in rows))
    return path


def by_name(rows):
    """{name: [(step, number)]}, of a step that comes again the last."""
    found = {}
    for name, step, text in rows:
        found.setdefault(name, {})[step] = float(text)
    return {name: sorted(steps.items()) for name, steps in found.items()}


def first_steps(shares, limit):
    above = [share >= limit for _, share in shares]
    first = above.index(False) if False in above else 0
    return first if first <= 3 else 0


def lasts(shares, limit):
    above = [share >= limit for _, share in shares]
    counted = sum(above) - first_steps(shares, limit)
    return counted > 0 and (20 * counted >= len(above) or (len(above) >= 3 and all(above[-3:])))


def since(shares, limit):
    first = None
    for step, share in shares:
        first = (step if first is None else first) if share >= limit else None
    return first


def close(interval, percent, scale=0.01):
    """Whether an interval is the printed number's, and no wider than its digits."""
    low, high = interval
    least = max(0, percent - HALF) * scale
    assert low == pytest.approx(least, rel=1e-9, abs=1e-12)
    assert high == pytest.approx((percent + HALF) * scale, rel=1e-9)


def expected_columns(steps, shares):
    size = -(-len(steps) // 400)
    columns = [steps[i : i + size] for i in range(0, len(steps), size)]
    cells = [(i, [s for step, s in shares if step in column]) for i, column in enumerate(map(set, columns))]
    return [(c[0], c[-1]) for c in columns], [(i, max(found)) for i, found in cells if found]


@pytest.mark.parametrize(("seed", "count"), [(1, 7), (2, 100), (3, 401), (4, 1000)])
def test_every_number_of_the_json_is_that_of_the_lines(seed, count, tmp_path):
    steps = sorted(random.Random(seed).sample(range(10 * count), count))
    rows = random_log(seed, steps, layers=4 if count > 400 else 9)
    (log,) = valid_json_of("analyze", write(tmp_path / "te.log", rows))["fp8"]
    assert log["steps"] == count
    assert log["limit"] == 0.02
    all_shares = {n: s for n, s in by_name(rows).items() if n.endswith("%")}
    for tensor in log["tensors"]:
        shares = all_shares.pop(f"{tensor['name']}_underflows%")
        share = tensor["underflow_share"]
        first = first_steps(shares, 2)
        assert share.get("first_steps", 0) == first
        largest = max(s for _, s in shares[first:])
        close(share["largest"], largest)
        assert share["largest_step"] == next(step for step, s in shares[first:] if s == largest)
        close(share["last"], shares[-1][1])
        assert share["last_step"] == shares[-1][0]
        middle = statistics.median(s for _, s in shares)
        assert share["median"][0] * 100 <= middle <= share["median"][1] * 100
        assert share["median"][1] - share["median"][0] <= 1.0001e-6
        for limit in LIMITS:
            at = f"{limit / 100:g}"
            assert share["steps_above"][at] == sum(s >= limit for _, s in shares) - first_steps(shares, limit)
            assert share["above_since"].get(at) == since(shares, limit)
        columns, cells = expected_columns(steps, shares)
        assert [tuple(c) for c in log["columns"]] == columns
        assert len(columns) <= 400
        assert share["columns"] == [[i, pytest.approx(s / 100, abs=1e-6)] for i, s in cells]
        for field, statistic, pick in (
            ("scale_inv_least", "scale_inv_min", min),
            ("scale_inv_most", "scale_inv_max", max),
            ("mse_largest", "mse", max),
        ):
            values = by_name(rows)[f"{tensor['name']}_{statistic}"]
            close(tensor[field], pick(v for _, v in values), scale=1)
            assert dict(values)[tensor[f"{field}_step"]] == pick(v for _, v in values)
    assert not all_shares
    layers = sorted({t["layer"] for t in log["tensors"]})
    shares = {n: s for n, s in by_name(rows).items() if n.endswith("%")}

    def at(limit):
        return [x for x in layers if any(lasts(s, limit) for n, s in shares.items() if n.startswith(x + "_"))]

    assert sorted(log["keep_in_bf16"]) == at(2)
    assert log["layers_above"] == {f"{limit / 100:g}": len(at(limit)) for limit in LIMITS}


def constant(tmp_path, shares, steps=range(0, 400, 10)):
    """A log of gradients with these shares, by layer; a list is a share a step."""
    rows = []
    for i, step in enumerate(steps):
        for layer, share in shares.items():
            rows.append((f"{layer}_gradient_underflows%", step, share[i] if isinstance(share, list) else share))
    return write(tmp_path / "te.log", rows)


def test_the_three_commands_say_which_layers_to_keep(tmp_path):
    log = constant(tmp_path, {"model.a.fc1": "5.8900", "model.b.fc1": "0.1000", "model.c.fc1": "2.5000"}
                   | {f"model.more.{i}": "0.0000" for i in range(7)})
    said = "2 of 10 layers lose 2 % or more of their gradients to underflow in FP8, the most 5.89 % of " \
           "model.a.fc1_gradient at step 0."
    for command in ("analyze", "recommend"):
        out, _ = run(command, log)
        assert said in " ".join(out.split()), out
        assert "Keep these layers in BF16." in " ".join(out.split())
        assert r"layer_name_regex_pattern: '^(model\.a\.fc1|model\.c\.fc1)$'" in out
        assert 'fp8_skip_layers = ["model.a.fc1", "model.c.fc1"]' in out
    assert run("recommend", log)[0].startswith("2 of 10 layers lose")
    found = valid_json_of("recommend", log)
    assert found["answer"]["headline"] == said
    assert found["answer"]["evidence"] == "fp8"
    assert found["fp8"][0]["keep_in_bf16"] == ["model.a.fc1", "model.c.fc1"]
    markdown = tmp_path / "report.md"
    run("report", log, "--out", markdown)
    assert "2 of 10 layers lose 2 % or more" in markdown.read_text()
    assert "fp8_skip_layers" in markdown.read_text()


def test_the_line_for_transformer_engine_selects_those_layers_alone(tmp_path):
    yaml = pytest.importorskip("yaml")
    names = ["a.layers.1.fc1", "a.layers.11.fc1", "a.layers.1.fc1.x", "odd+name[0]'s", "aXlayers.1.fc1"]
    log = constant(tmp_path, {n: "3.0000" if n in (names[0], names[3]) else "0.0000" for n in names})
    out, _ = run("analyze", log)
    text = next(x.strip() for x in out.splitlines() if x.strip().startswith("keep_in_bf16:"))
    section = yaml.safe_load(text)["keep_in_bf16"]
    assert section["enabled"] is True
    assert section["transformer_engine"] == {"DisableQuantizationLayer": {"enabled": True}}
    pattern = re.compile(section["layers"]["layer_name_regex_pattern"])
    assert [n for n in names if pattern.search(n)] == [names[0], names[3]]


@pytest.mark.parametrize("command", ["analyze", "recommend"])
def test_nothing_wrong_is_said_plainly(command, tmp_path):
    out, _ = run(command, constant(tmp_path, {"x.fc1": "0.3100", "x.fc2": "0.0000"}))
    text = " ".join(out.split())
    assert "Of 2 layers, none loses 2 % or more of a tensor to underflow in FP8" in text
    assert "0.31 % of x.fc1_gradient at step 0" in text
    assert "BF16 because of underflow" in text
    assert "fp8_skip_layers" not in out


def test_first_steps_without_history_are_no_reason(tmp_path):
    log = constant(tmp_path, {"x.fc1": ["100.0000"] + ["0.0100"] * 39, "x.fc2": "0.0000", "x.fc3": "0.0000"})
    (found,) = json_of("analyze", log)["fp8"]
    assert found["keep_in_bf16"] == []
    assert found["briefly_above"] == ["x.fc1"]


@pytest.mark.parametrize(("first", "steps", "keeps"), [(1, 20, 0), (1, 2, 0), (3, 10, 0), (4, 10, 1), (2, 2, 1)])
def test_first_steps_of_few_are_no_reason(first, steps, keeps, tmp_path):
    log = constant(tmp_path, {"x.fc1": ["90.0000"] * first + ["0.1000"] * (steps - first)}, range(steps))
    (found,) = json_of("analyze", log)["fp8"]
    assert found["keep_in_bf16"] == ["x.fc1"][:keeps]
    assert found["briefly_above"] == ["x.fc1"][keeps:]


def test_what_was_lost_at_first_steps_is_no_largest_share(tmp_path):
    layers = {f"x.{i}": ["90.0000"] + ["0.0010"] * 39 for i in range(30)}
    layers["x.late"] = ["90.0000"] + ["0.1000"] * 20 + ["3.9000"] * 19
    layers["x.blip"] = ["0.1000"] * 20 + ["50.0000"] + ["0.1000"] * 19
    log = constant(tmp_path, layers)
    text = words_of("analyze", log)
    assert "the most 3.90 % of x.late_gradient at step 210, 2 % or more since step 210. Keep this layer" in text
    assert "1 layer reaches 2 % at a few steps only, the most with 50.0 % of x.blip_gradient at step 200." in text
    assert "31 layers lose 2 % or more, the most 90.0 % of x.0_gradient at step 0." in text
    rows = [x.split()[0] for x in run("analyze", log)[0].splitlines() if "_gradient  FP8" in x]
    assert rows[:2] == ["x.late_gradient", "x.blip_gradient"]
    found = json_of("analyze", log)
    assert "the most 3.90 %" in json_of("recommend", log)["answer"]["headline"]
    share = next(t for t in found["fp8"][0]["tensors"] if t["name"] == "x.late_gradient")["underflow_share"]
    close(share["largest"], 3.9)
    assert (share["first_steps"], share["steps_above"]["0.02"]) == (1, 19)
    assert found["fp8"][0]["tensors"][0]["underflow_share"]["steps_above"]["0.02"] == 0


def test_what_is_clipped_is_said(tmp_path):
    rows = []
    for step in range(0, 400, 10):
        for layer, share in ((0, "0.0000"), (1, "0.0100"), (2, "12.5000")):
            rows.append((f"x.{layer}.fc1_gradient_underflows%", step, "0.0000"))
            rows.append((f"x.{layer}.fc1_gradient_overflows%", step, share))
    said = "1 of 3 layers clips 0.5 % or more of a tensor to the largest value of its format, the most 12.5 % of " \
           "x.2.fc1_gradient at step 0."
    log = write(tmp_path / "te.log", rows)
    for command in ("analyze", "recommend"):
        assert said in words_of(command, log)
    assert run("recommend", log)[0].startswith("1 of 3 layers clips")
    alone = write(tmp_path / "alone.log", [row for row in rows if "overflows%" in row[0]])
    assert said in words_of("analyze", alone)
    first = write(tmp_path / "first.log", [row if row[1] == 0 else (*row[:2], "0.0000") for row in rows])
    assert "clips 0.5" not in run("analyze", first)[0]


def test_a_share_below_the_limit_is_not_rounded_to_it(tmp_path):
    out, _ = run("analyze", constant(tmp_path, {"x.fc1": "1.9999", "x.fc2": "0.0000"}))
    assert "the most is 1.9999 % of x.fc1_gradient at step 0" in " ".join(out.split())


def test_a_loss_that_begins_late_and_stays_is_one(tmp_path):
    steps = range(0, 1000, 10)
    log = constant(tmp_path, {"x.fc1": ["0.0100"] * 97 + ["2.0000"] * 3, "x.fc2": ["0.0000"] * 100,
                              "x.fc3": ["0.0100"] * 98 + ["2.0000"] * 2}, steps)
    (found,) = json_of("analyze", log)["fp8"]
    assert found["keep_in_bf16"] == ["x.fc1"]
    share = found["tensors"][0]["underflow_share"]
    assert share["above_since"]["0.02"] == 970
    assert "0.04" not in share["above_since"]


def test_other_recipes_are_measured_beside_the_runs_own(tmp_path):
    rows = []
    for step in range(30):
        for layer in ("x.fc1", "x.fc2", "x.fc3"):
            rows.append((f"{layer}_gradient_underflows%", step, "0.0100"))
            rows.append((f"{layer}_gradient_mxfp8_underflows%", step, "7.0000"))
            rows.append((f"{layer}_gradient_mxfp8_underflows%_columnwise", step, "8.0000"))
    (found,) = json_of("analyze", write(tmp_path / "te.log", rows))["fp8"]
    assert found["keep_in_bf16"] == []
    recipes = {(t["recipe"], t.get("columnwise", False), t["judged"]) for t in found["tensors"]}
    assert recipes == {("own", False, True), ("mxfp8", False, False), ("mxfp8", True, False)}
    text = words_of("analyze", tmp_path / "te.log")
    assert "The same tensors in other formats" in text
    rows = [row for row in rows if "mxfp8" in row[0]]
    text = words_of("analyze", write(tmp_path / "mx.log", rows))
    assert "3 of 3 layers lose 2 % or more of their gradients to underflow in MXFP8" in text
    assert "does not say if the run trained with MXFP8" in text


def test_ranks_in_folders_count_the_worst(tmp_path):
    for rank, share in enumerate(("0.1000", "9.0000", "0.2000")):
        folder = tmp_path / "run" / f"rank_{rank}" / "nvdlfw_inspect_statistics_logs"
        folder.mkdir(parents=True)
        rows = [(f"x.fc{i}_gradient_underflows%", step, share if i == 1 else "0.0000")
                for step in range(5 if rank else 4) for i in (1, 2, 3)]
        write(folder / f"nvdlfw_inspect_globalrank-{rank}.log", rows)
    (found,) = json_of("analyze", tmp_path / "run")["fp8"]
    assert found["keep_in_bf16"] == ["x.fc1"]
    assert found["steps"] == 5
    close(found["tensors"][0]["underflow_share"]["largest"], 9.0)
    assert found["tensors"][0]["underflow_share"]["steps"] == 5


def test_steps_tensors_and_roles_can_be_selected(tmp_path):
    log = constant(tmp_path, {"x.fc1": "5.0000", "x.fc2": "5.0000"}, range(10))
    (found,) = json_of("analyze", log, "--step", "3:6", "--tensor", "x.fc1*", "--role",
                       "x.*=weight_grad")["fp8"]
    assert found["steps"] == 3
    assert [t["name"] for t in found["tensors"]] == ["x.fc1_gradient"]
    assert found["tensors"][0]["role"] == "weight_grad"
    _, message = run("analyze", log, "--tensor", "y*", expect=1)
    assert "no tensor is selected by --tensor" in message
    assert "x.fc1_gradient" in message


def test_numbers_that_cannot_be_are_told_and_not_used(tmp_path):
    rows = [("x.fc1_gradient_underflows%", step, "0.1000") for step in range(5)]
    rows += [("x.fc1_gradient_underflows%", 5, "100.5000"), ("x.fc1_gradient_underflows%", 6, "-1.0000"),
             ("x.fc1_gradient_underflows%", 7, "nan"), ("x.fc1_gradient_mse", 1, "-2.0000"),
             ("x.fc1_gradient_mse", 2, "inf"), ("x.fc1_gradient_scale_inv_min", 1, "3.0000"),
             ("x.fc1_gradient_scale_inv_max", 1, "1.0000"), ("x.fc1_gradient_scale_inv_min", 2, "1.0000"),
             ("x.fc1_gradient_scale_inv_max", 2, "1.0000")]
    log = write(tmp_path / "te.log", rows)
    log.write_text(log.read_text() + "2026-01-13 12:00:00,123 - INFO - x.fc1_gradient_underflows% \t iterat")
    out, notes = run("analyze", log, "--json", "-")
    (tensor,) = json.loads(out)["fp8"][0]["tensors"]
    close(tensor["underflow_share"]["largest"], 0.1)
    assert tensor["underflow_share"]["steps"] == 5
    assert "mse_largest" not in tensor
    close(tensor["scale_inv_least"], 1.0, scale=1)
    assert "below 0 or above 100: 2 times, first in line 6" in notes
    assert "is NaN or infinite: 2 times, first in line 8" in notes
    assert "mse is negative: once, in line 9" in notes
    assert "scale_inv_min is above scale_inv_max: once" in notes


def test_a_log_without_underflows_says_what_to_record(tmp_path):
    log = write(tmp_path / "te.log", [("x.fc1_weight_mse", step, "0.5000") for step in range(3)])
    out, _ = run("recommend", log)
    assert "no underflows%, so what became zero is unknown" in " ".join(out.split())


@pytest.mark.parametrize(("condition", "code", "said"), [
    ("underflow_share > 5%", 0, ""),
    ("underflow_share > 5% for x.fc2*", 0, ""),
    ("underflow_share >= 1.5%", 4, "te.log: tensor 'x.fc1_gradient': underflow_share 1.60 % >= 1.5 %"),
    ("underflow_share > 0.01 for activation_grad", 4, "tensor 'x.fc1_gradient': underflow_share "),
    ("underflow_share >= 2^-2", 0, ""),
    ("underflow_share > 5% for weight", 2, "no selected tensor is of role or name 'weight'"),
    ("nan > 0", 2, "use underflow_share, a field of its statistics of FP8 or FP4"),
])
def test_a_gate_on_the_largest_share(condition, code, said, tmp_path):
    log = constant(tmp_path, {"x.fc1": ["99.0000"] + ["1.6000"] * 20, "x.fc2": "0.1000"}, range(21))
    out, err = run("analyze", log, "--fail-if", condition, expect=code)
    assert said in err, err
    assert bool(out) == (code != 2)


def test_a_share_at_the_limit_of_a_gate_is_undecided(tmp_path):
    log = constant(tmp_path, {"x.fc1": "2.0000"})
    _, err = run("analyze", log, "--fail-if", "underflow_share >= 2%", expect=4)
    assert "is undecided: only bounds are known" in err
    run("analyze", log, "--fail-if", "underflow_share > 2.0001%")
