# SPDX-License-Identifier: Apache-2.0
"""Logs that are text: files as input.hpp's files_in() takes them apart, "name\\ncontents"."""

import json
import pathlib

from .tensors import safetensors

CONSOLE = pathlib.Path(__file__).resolve().parents[2] / "data/console"


def folder(files):
    return b"\x1e".join(name.encode() + b"\n" + text.encode() for name, text in files)


def wandb():
    rows = [
        {"_step": 0, "loss": 2.5, "loss_scale": 65536.0},
        {
            "_step": 1,
            "loss": "NaN",
            "gradients/fc.weight": {"_type": "histogram", "values": [0, 7, 3],
                                    "bins": [-1e-7, 0.0, 1e-7, 2e-7]},
        },
        {
            "_step": 2,
            "parameters/fc.weight": {"_type": "histogram", "values": [1, 2],
                                     "packedBins": {"min": -1.0, "size": 1.0, "count": 2}},
        },
        {"_step": 3, "nested": {"gradients/a": {"_type": "histogram", "values": [], "bins": []}}},
    ]
    lines = "\n".join(json.dumps(row) for row in rows)
    yield "lines", folder([("history.jsonl", lines)])
    yield "words", folder([("history.jsonl", '{"_step": 1, "a": NaN, "b": -Infinity}\n')])
    yield "array", folder([("history.json", json.dumps(rows))])
    columns = {key: [row.get(key) for row in rows] for key in ("_step", "loss")}
    yield "columns", folder([("history.json", json.dumps(columns))])
    yield "two", folder([("a.jsonl", lines), ("b.jsonl", lines)])


def te_statistics():
    line = "2026-01-01 00:00:00,000 - INFO - {} \t\t\t\t iteration={:06d} \t\t\t\t value={}\n"
    names = ("layer1.fc_gradient_max", "layer1.fc_gradient_min", "layer1.fc_wgrad_cur_amax",
             "layer1.fc_wgrad_underflows%", "layer1.fc_activation_dynamic_range")
    text = "".join(line.format(name, step, value) for step in (0, 2)
                   for name, value in zip(names, ("0.0012", "-0.5000", "12.2500", "3.1250", "inf")))
    name = "nvdlfw_inspect_globalrank-{}.log"
    yield "rank", folder([(name.format(0), text)])
    other = text.replace("12.2500", "0.0000")
    yield "ranks", folder([(name.format(0), text), (name.format(1), other)])
    yield "bare", folder([(name.format(0), text.replace("2026-01-01 00:00:00,000 - ", ""))])
    yield "fp8", folder([(name.format(0), fp8_statistics(line))])


def fp8_statistics(line):
    """Four layers of which one loses much, and what MXFP8 would make of another."""
    shares = {"layer1.fc1": 0.25, "layer1.fc2": 6.5, "layer2.fc1": 0, "layer2.fc2": 1.5}
    rows = [(f"{layer}_gradient_{statistic}", step, value)
            for step in range(0, 60, 5) for layer, share in shares.items()
            for statistic, value in (("underflows%", share * (1 + step / 60)), ("mse", 0.0125),
                                     ("scale_inv_min", 0.0001), ("scale_inv_max", 0.5))]
    rows += [("layer1.fc2_gradient_mxfp8_underflows%_columnwise", 5, 0.125),
             ("layer1.fc2_weight_underflows%", 5, 101), ("layer1.fc2_weight_overflows%", 5, 0)]
    return "".join(line.format(name, step, f"{value:.4f}") for name, step, value in rows)


def deepspeed_csv():
    scale = "step,Train/Samples/loss_scale\n1,65536\n2,32768.0\n3,nan\n"
    loss = "step,Train/Samples/train_loss\n1,2.5\n2,inf\n"
    again = loss + loss
    yield "scale", folder([("Train_Samples_loss_scale.csv", scale)])
    yield "folder", folder([("Train_Samples_loss_scale.csv", scale),
                            ("Train_Samples_train_loss.csv", again),
                            ("Train_Samples_lr.csv", "step,lr\r\n1,1e-3\r\n")])


def console():
    lines = [
        "[deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 65536, "
        "reducing to 32768",
        "OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 65536, but hysteresis is 2. "
        "Reducing hysteresis to 1",
        "Grad overflow on iteration 7",
        "Gradient overflow.  Skipping step, loss scaler 0 reducing loss scale to 32768.0",
        "step=10, skipped=2, lr=[0.001], mom=[(0.9, 0.999)]",
        " iteration       10/   100 | consumed samples: 160 | learning rate: 1.0E-04 | lm loss: "
        "6.9E+00 | loss scale: 65536.0 | number of skipped iterations:   1 |",
    ]
    yield "lines", folder([("train.log", "\n".join(lines) + "\n")])
    for number, line in enumerate(lines):
        yield f"line-{number}", folder([("train.log", line + "\n" + line)])
    for log in sorted(CONSOLE.glob("*.txt")):
        yield log.stem, folder([("train.log", log.read_text())])
    for run in sorted(CONSOLE.glob("*/")):
        yield run.name, folder([(log.name, log.read_text()) for log in sorted(run.iterdir())])


def paddle():
    line = ("[PRECISION] [ERROR] in [device=gpu:0, op={}, tensor={}, dtype={}], numel=40, "
            "num_nan=0, num_inf={}, num_zero=2, max={}, min={}, mean={}\n")
    text = (line.format("divide", "", "fp32", 4, "inf", "1.048930e+00", "inf")
            + line.format("matmul_grad", "x@GRAD", "fp16", 0, "6.0e-08", "-1.0e-03", "nan"))
    yield "lines", folder([("log", text)])
    yield "workers", folder([("worker_gpu.0", text), ("worker_gpu.1", text)])


def msprobe():
    unreduced = ("vpp_stage,name,step,min,max,norm,zeros,nans\n"
                 "0,layer.weight,0,-1e-7,1e-3,0.5,0.25,0\n0,layer.weight,1,0,inf,nan,1,3\n")
    micro = "vpp_stage,name,step,micro_step,norm\n0,layer.bias,0,0,0.125\n0,layer.bias,0,1,0.25\n"
    yield "folder", folder([("grad_unreduced_0-1.csv", unreduced), ("actv_0-1.csv", micro)])
    yield "one", folder([("grad_reduced_0-99.csv", unreduced)])


def trainer_state():
    history = [{"epoch": 0.1, "grad_norm": float("nan"), "loss": 0.0, "step": 10},
               {"grad_norm": None, "learning_rate": 1e-5, "loss": "2.5", "step": 20},
               {"eval_loss": float("inf"), "step": 20},
               {"step": 20, "train_loss": 2.0, "train_runtime": 3.5}]
    state = {"global_step": 20, "log_history": history, "stateful_callbacks": {"a": [[1]]}}
    early = dict(state, global_step=10, log_history=history[:1])
    other = dict(state, log_history=history[1:])
    name = "trainer_state.json"
    yield "one", folder([(name, json.dumps(state, indent=2))])
    yield "two", folder([("a/" + name, json.dumps(early)), ("b/" + name, json.dumps(state))])
    yield "runs", folder([("a/" + name, json.dumps(other)), ("b/" + name, json.dumps(state))])


def metrics_csv():
    table = ("epoch,lr-AdamW,step,train_loss,loss_scale\n,0.001,49,,\n0,,49,2.5,65536.0\n"
             "0,,99,nan,\n")
    yield "lightning", folder([("version_0/metrics.csv", table)])
    yield "chart", folder([("chart.csv", '"Step","run - train/loss"\r\n"1","2.5"\r\n')])
    yield "two", folder([("a.csv", table), ("b.csv", table)])


def msprobe_dump():
    def tensor(largest, least, dtype="torch.float16"):
        return {"type": "torch.Tensor", "dtype": dtype, "shape": [2], "Max": largest, "Min": least}
    nodes = {
        "Module.a.Linear.forward.0": {
            "input_args": [tensor(1.5, -2.0), None, [tensor(True, False, "torch.bool")]],
            "input_kwargs": {"mask": tensor(0.0, -float("inf"))}, "output": [tensor("inf", -1.0)],
            "parameters": {"weight": tensor(0.5, -0.5)}},
        "Module.a.Linear.backward.0": {"input": [tensor(float("nan"), 0)], "output": [None]},
        "Module.a.Linear.parameters_grad": {"weight": [tensor(1e-8, 0.0)]},
        "x.0.debug": tensor(None, None, "Float32")}
    text = json.dumps({"task": "statistics", "level": "mix", "dump_data_dir": None, "data": nodes},
                      indent=1)
    yield "one", folder([("dump.json", text)])
    yield "ranks", folder([(f"step0/rank{rank}/dump.json", text) for rank in (0, 1)])


def mlflow():
    loss = "1712000000000 2.5 0\n1712000000001 nan 1\n1712000000002 inf 2 data digest\n"
    run = [("metrics/train/loss", loss), ("metrics/lr", "1712000000000 0.5\n1712000000001 0.25\n")]
    yield "run", folder(run)
    yield "runs", folder([(f"{name}/{file}", text) for name in "ab" for file, text in run])
    yield "file", folder([("loss", loss)])


def shards():
    """Of a sharded checkpoint, for the target that takes any folder."""
    shard_of = {"w": "a.safetensors", "b": "b.safetensors"}
    index = {"metadata": {"total_size": 4}, "weight_map": shard_of}
    shard = [safetensors([(name, "F32", [1], [0, 4])], b"\0\0\x80\x3f") for name in ("w", "b")]
    names = ("a.safetensors", "b.safetensors")
    yield folder([("model.safetensors.index.json", json.dumps(index))]) + b"".join(
        b"\x1e" + name.encode() + b"\n" + data for name, data in zip(names, shard))


def seeds():
    for data in shards():
        yield "any_log", "shards", data
    for kind in (wandb, te_statistics, deepspeed_csv, console, paddle, msprobe, trainer_state,
                 metrics_csv, mlflow, msprobe_dump):
        for name, data in kind():
            yield kind.__name__, name, data
            yield kind.__name__, f"{name}-cut", data[:-3]
            yield "any_log", f"{kind.__name__}-{name}", data
