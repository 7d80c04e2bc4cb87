# SPDX-License-Identifier: Apache-2.0
"""Files in which training loops keep their scalars, from the file to the answer: Hugging Face's
trainer_state.json, Lightning's metrics.csv, MLflow's folders; and msprobe's dump.json."""
import csv
import functools
import json

import pytest

from program import run, valid_json_of

analyzed = functools.partial(valid_json_of, "analyze")


def first_line(log):
    return run("analyze", log).stdout.splitlines()[0]


def write_state(folder, norms, losses=None):
    """As transformers writes it: json.dumps with sorted keys and an indent of 2."""
    folder.mkdir(parents=True, exist_ok=True)
    history = [{"epoch": n / 10, "grad_norm": norm, "learning_rate": 1e-5,
                "loss": losses[n] if losses else 2.5, "step": 10 * (n + 1)}
               for n, norm in enumerate(norms)]
    step = 10 * len(norms)
    history.append({"epoch": 1.0, "eval_loss": 2.25, "eval_runtime": 3.5, "step": step})
    state = {"best_metric": None, "epoch": 1.0, "global_step": step, "log_history": history,
             "is_local_process_zero": True, "max_steps": 1000, "train_batch_size": 8}
    text = json.dumps(state, indent=2, sort_keys=True) + "\n"
    (folder / "trainer_state.json").write_text(text)


nan, inf = float("nan"), float("inf")


def test_a_trainer_state_ends_in_nan(tmp_path):
    norms = [1.5, nan, 1.25, 1.0] + [nan] * 4
    write_state(tmp_path, norms, [2.5] * 4 + [0.0] * 4)
    said = first_line(tmp_path / "trainer_state.json")
    assert said.startswith("The loss is NaN or infinite from step 50 to 80, at 4 printed steps. The gradient norm is NaN or infinite from step 50 to 80")
    [timeline] = analyzed(tmp_path)["timeline"]
    assert timeline["state"] == "broken" and timeline["nonfinite_since"] == 50
    found = [(one["of"], one["first"], one["last"], one["count"]) for one in timeline["nonfinite"]]
    assert found == [("loss", 50, 80, 4), ("gradient_norm", 20, 80, 5)]
    assert "the loss is 0 in 4 entries" in run("analyze", tmp_path).stderr


def test_norms_that_finite_ones_follow_are_as_at_skipped_steps(tmp_path):
    write_state(tmp_path, [inf, nan, 1.5, 1.25])
    assert "a dynamic loss scale skips such a step" in run("recommend", tmp_path).stdout
    write_state(tmp_path, [1.5, 1.25, 1.0])
    assert "NaN" not in first_line(tmp_path)


def test_a_runs_folder_and_the_checkpoint_in_it_say_the_same(tmp_path):
    write_state(tmp_path / "checkpoint-30", [1.5, nan, 1.25])
    write_state(tmp_path / "checkpoint-100", [1.5, nan, 1.25] + [1.0] * 7)
    of_run, of_checkpoint = analyzed(tmp_path), analyzed(tmp_path / "checkpoint-100")
    for found in (of_run, of_checkpoint):
        found["timeline"][0].pop("log")
    assert of_run["timeline"] == of_checkpoint["timeline"]
    write_state(tmp_path / "checkpoint-30", [1.0, nan, 1.25])
    refused = run("analyze", tmp_path, expect=1).stderr
    assert "2 trainer states that begin differently" in refused
    assert "checkpoint-30" in refused and "name one of these" in refused


@pytest.fixture
def scales():
    """Of each step: the scale it was tried at; skipped where it halves."""
    return [65536.0] * 3 + [32768.0] * 2 + [16384.0] * 15


def assert_of_scales(timeline, scales):
    assert timeline["loss_scale"]["first"] == scales[0]
    assert timeline["loss_scale"]["last"] == scales[-1]
    assert [(c["from"], c["to"]) for c in timeline["changes"]] == [(65536.0, 32768.0),
                                                                  (32768.0, 16384.0)]


def test_lightnings_table(tmp_path, scales):
    folder = tmp_path / "lightning_logs" / "version_0"
    folder.mkdir(parents=True)
    (folder / "hparams.yaml").write_text("{}\n")
    names = ["epoch", "step", "train_loss", "lr-AdamW", "loss_scale"]
    with open(folder / "metrics.csv", "w", newline="") as file:
        table = csv.DictWriter(file, names)
        table.writeheader()
        for step, scale in enumerate(scales):
            table.writerow({"step": step, "lr-AdamW": 0.001})
            table.writerow({"epoch": 0, "step": step, "train_loss": 2.5, "loss_scale": scale})
    for log in (tmp_path / "lightning_logs", folder, folder / "metrics.csv"):
        [timeline] = analyzed(log)["timeline"]
        assert_of_scales(timeline, scales)
        assert (timeline["first"], timeline["last"]) == (0, len(scales) - 1)


def test_mlflows_folders(tmp_path, scales):
    metrics = tmp_path / "mlruns" / "0" / "abc" / "metrics"
    (metrics / "train").mkdir(parents=True)
    (tmp_path / "mlruns" / "0" / "meta.yaml").write_text("name: Default\n")
    def rows(values):
        return "".join(f"{1712000000000 + s} {value} {s}\n" for s, value in enumerate(values))
    (metrics / "loss_scale").write_text(rows(scales))
    (metrics / "train" / "loss").write_text(rows([2.5] * 19 + [nan]))
    [timeline] = analyzed(tmp_path / "mlruns")["timeline"]
    assert_of_scales(timeline, scales)
    assert first_line(metrics.parent).startswith("The loss is NaN or infinite at step 19")
    other = tmp_path / "mlruns" / "0" / "def" / "metrics"
    other.mkdir(parents=True)
    (other / "loss").write_text(rows([2.5]))
    refused = run("analyze", tmp_path / "mlruns", expect=1).stderr
    assert "2 MLflow runs" in refused and "abc" in refused and "def" in refused


def write_dump(folder, bad_layer, layers=4):
    """As msprobe writes it: nodes in the order in which they run, from `bad_layer` on infinite."""
    def tensor(largest):
        return {"type": "torch.Tensor", "dtype": "torch.float16", "shape": [2, 4], "Max": largest,
                "Min": -1.0, "Mean": 0.5, "Norm": 2.5, "requires_grad": True}
    folder.mkdir(parents=True)
    nodes = {}
    for layer in range(layers):
        given = 2.0 if layer <= bad_layer else inf
        made = 2.0 if layer < bad_layer else inf
        nodes[f"Module.z{layers - layer}.Linear.forward.0"] = {
            "input_args": [tensor(given)], "input_kwargs": {}, "output": [tensor(made)]}
    dump = {"task": "statistics", "level": "L0", "framework": "pytorch", "dump_data_dir": None,
            "data": nodes}
    (folder / "dump.json").write_text(json.dumps(dump, indent=1))
    (folder / "stack.json").write_text("{}")


def test_msprobes_dump_names_the_first_node_that_makes_infinities(tmp_path):
    write_dump(tmp_path / "step7" / "rank0", bad_layer=3)
    write_dump(tmp_path / "step7" / "rank1", bad_layer=2)
    write_dump(tmp_path / "step6" / "rank0", bad_layer=4)
    done = run("analyze", tmp_path)
    assert "step 7, rank 1: 'Module.z2.Linear.forward.0', node 3 of its dump" in done.stderr
    said = done.stdout.splitlines()[0]
    assert said.startswith("Module.z2.Linear.forward.0.output.0 and 2 other tensors hold")
    assert "Module.z2.Linear.forward.0 is the first with finite inputs and NaN or infinite outputs, at step 7" in said
    for command in ("analyze", "recommend"):
        assert "dtype" not in run(command, tmp_path).stdout
        assert "does not show why" not in run(command, tmp_path).stdout
    peaks = {p["name"]: p for p in analyzed(tmp_path / "step6")["peaks"]}
    assert peaks["Module.z4.Linear.forward.0.input.0"]["max_abs"] == 2.0
    assert peaks["Module.z4.Linear.forward.0.input.0"]["role"] == "activation"


def test_a_dump_that_ends_in_infinities_gets_no_settings(tmp_path):
    for step in range(4):
        write_dump(tmp_path / "dump" / f"step{step}" / "rank0", bad_layer=2 if step == 3 else 9)
        path = tmp_path / "dump" / f"step{step}" / "rank0" / "dump.json"
        dump = json.loads(path.read_text())
        made = nan if step == 3 else 2.0
        gradient = {"dtype": "torch.float16", "shape": [2], "Max": made, "Min": made}
        dump["data"]["Module.z4.Linear.parameters_grad"] = {"weight": [gradient]}
        path.write_text(json.dumps(dump))
    said = run("policies", tmp_path / "dump").stdout
    assert said.startswith("Module.z2.Linear.forward.0.output.0 and ")
    assert "No settings are given, static or dynamic: no loss scale helps this run." in " ".join(said.split())
    assert "GradScaler" not in said and "worth a change" not in said and "recommended static" not in said
    assert "recommended settings" not in " ".join(said.split())
    page = tmp_path / "page.html"
    run("report", tmp_path / "dump", "--out", page)
    text = page.read_text().split('<script type="application/json"')[0]
    assert "GradScaler" not in text.split("What the log does not show")[0]
    assert "Loss scale, by the finite gradients" not in text and "Loss scale to use" not in text


@pytest.mark.parametrize("metric", ["loss_scale", "grad_scale", "train/loss_scale"])
def test_a_chart_that_weights_and_biases_exports(metric, tmp_path):
    rows = [f'"{step}","{65536.0 if step < 50 else 32768.0}","65536.0","65536.0"' for step in range(1, 100)]
    name = f"run-7 - {metric}"
    (tmp_path / "wandb.csv").write_text(f'"Step","{name}","{name}__MIN","{name}__MAX"\n' + "\n".join(rows) + "\n")
    [timeline] = analyzed(tmp_path / "wandb.csv")["timeline"]
    assert timeline["steps"] == 99 and timeline["last_scale"] == 32768
