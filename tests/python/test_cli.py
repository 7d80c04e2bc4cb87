# SPDX-License-Identifier: Apache-2.0
"""The program as a user meets it: numbers against NumPy, exit codes, messages, bounded memory."""

import json
import os
import pathlib
import re
import struct
import subprocess
import time

import numpy as np
import pytest
from safetensors.numpy import save_file

from program import PROGRAM, ROOT, run, valid_json_of


def gradients(n, seed=0, center=-18.0, deviation=6.0):
    random = np.random.default_rng(seed)
    sign = random.choice([-1.0, 1.0], n)
    return (sign * np.exp2(random.normal(center, deviation, n))).astype(np.float32)


@pytest.fixture
def log(tmp_path):
    values = gradients(20000)
    values[::50] = 0
    save_file({"weight_grad/a": values, "activation/b": gradients(500, 1, 3, 5)}, tmp_path / "g.safetensors")
    return tmp_path / "g.safetensors"


def numpy_counts(values, scale):
    """What NumPy's own conversion makes of scale * values: the judge."""
    with np.errstate(over="ignore", under="ignore"):
        half = np.abs((values.astype(np.float64) * scale).astype(np.float16).view(np.uint16) & 0x7FFF)
    nonzero = values != 0
    return {
        "zero": int(np.sum(~nonzero)),
        "flushed_to_zero": int(np.sum((half == 0) & nonzero)),
        "subnormal": int(np.sum((half > 0) & (half < 0x400))),
        "normal": int(np.sum((half >= 0x400) & (half < 0x7C00))),
        "overflow": int(np.sum(half == 0x7C00)),
    }


@pytest.mark.parametrize("scale", [1, 1024, 2.0**-10, 1000, 0.3])
def test_counts_equal_numpys_conversion(log, scale):
    tensor = valid_json_of("analyze", log, "--loss-scale", scale)["tensors"][0]
    values = gradients(20000)
    values[::50] = 0
    wanted = numpy_counts(values, scale)
    assert {key: tensor[key] for key in wanted} == wanted
    assert tensor["max_abs"] == float(np.abs(values).max())
    assert tensor["min_abs_nonzero"] == float(np.abs(values[values != 0]).min())
    exponents, counts = np.unique(np.frexp(values[values != 0])[1] - 1, return_counts=True)
    assert tensor["binades"] == [[int(e), int(n)] for e, n in zip(exponents, counts)]


def test_every_scale_at_once(log):
    tensor = valid_json_of("analyze", log)["tensors"][0]
    values = gradients(20000)
    values[::50] = 0
    for entry in tensor["by_scale"]:
        wanted = numpy_counts(values, 2.0 ** entry["log2_scale"])
        del wanted["zero"]
        assert {key: entry[key] for key in wanted} == wanted


def test_identity_of_the_counts(log):
    for tensor in valid_json_of("analyze", log, "--loss-scale", "4096")["tensors"]:
        parts = ["zero", "nan", "inf", "flushed_to_zero", "subnormal", "normal", "overflow"]
        assert sum(tensor[part] for part in parts) == tensor["total"]


def test_recommend_says_the_answer_first(log):
    out, err = run("recommend", log)
    assert out.startswith("activation/b reaches 370782 (2^18.5), too large for FP16")  # what no scale cures
    assert out.splitlines()[1].startswith("Use a loss scale of ")
    assert 'GradScaler("cuda", init_scale=' in out
    assert "no manifest" in err
    advice = valid_json_of("recommend", log)
    largest = float(np.abs(gradients(20000)).max())
    assert largest * advice["static_scale"] * 2 < 65520 <= largest * advice["static_scale"] * 4
    assert advice["limited_by"]["name"] == "weight_grad/a"


def test_autocast_gradients_are_recognised(tmp_path):
    half = gradients(5000, 3, -6, 4).astype(np.float16).astype(np.float32) / np.float32(65536)
    half[0] = 0  # without a zero nothing can have underflowed
    save_file({"weight_grad/a": half}, tmp_path / "h.safetensors")
    tensor = valid_json_of("analyze", tmp_path / "h.safetensors")["tensors"][0]
    assert tensor["suspected_fp16"] and not tensor["underflow_identifiable"]
    advice = valid_json_of("recommend", tmp_path / "h.safetensors")
    assert advice["lowest"] is None and advice["underflow_not_identifiable"]


def test_csv_and_json_files(log, tmp_path):
    run("analyze", log, "--csv", tmp_path / "out.csv", "--json", tmp_path / "out.json")
    lines = (tmp_path / "out.csv").read_bytes().decode().split("\r\n")
    assert lines[0].startswith("log,name,role,") and len(lines) == 4
    assert json.loads((tmp_path / "out.json").read_text())["tensors"][0]["name"] in lines[1]


def test_names_are_data(tmp_path):
    name = "weight_grad/\x1b[31m<script>\n\u202e"
    save_file({name: gradients(10)}, tmp_path / "g.safetensors")
    out, err = run("analyze", tmp_path / "g.safetensors")
    assert "\x1b" not in out + err and "\u202e" not in out + err and "<script>" in out
    out, _ = run("recommend", tmp_path / "g.safetensors")
    assert "\x1b" not in out
    assert valid_json_of("analyze", tmp_path / "g.safetensors")["tensors"][0]["name"] == name


def test_what_is_broken_comes_first(tmp_path):
    """NaN, then overflow, before all the tensors that only underflow."""
    for step, broken in ((0, 1.0), (10, np.nan), (20, np.nan)):
        tensors = {f"weight_grad/g{i}": gradients(50, i) for i in range(30)}
        tensors["weight_grad/g7"][:3] = broken
        tensors["activation/big"] = np.full(1500, 70000.0, np.float32)
        tensors["activation/small"] = np.full(1500, broken, np.float32)
        save_file(tensors, tmp_path / f"log-step{step}.safetensors")
    lines = run("analyze", tmp_path)[0].splitlines()
    assert lines[0].startswith("activation/small and 1 other tensor hold NaN from step 10 to the "
                               "last, 20, at 2 recorded steps.")
    assert lines[1].startswith("NaN in 2 tensors, first at step 10: activation/small and 1 more")
    assert [line for line in lines if line.startswith("Values of")][0] == "Values of 1 tensor overflow in FP16: activation/big (100 %)."
    header = next(i for i, line in enumerate(lines) if line.startswith("  tensor "))
    rows = [line.split() for line in lines[header + 1:header + 4]]
    assert [row[0] for row in rows] == ["weight_grad/g7", "activation/small", "activation/big"]
    assert rows[1][-1] == "3,000"
    one = run("analyze", tmp_path, "--loss-scale", "1024", "--step", "0")[0]
    assert one.startswith("Values of 1 tensor overflow") and "(100 %)" in one.splitlines()[0]
    assert "big" not in one.split("NaN, inf")[1]


@pytest.mark.parametrize(("dtype", "name"), [(np.float16, "FP16"), ("bf16", "BF16")])
def test_zeros_that_may_be_underflow_are_told(tmp_path, dtype, name):
    values = np.array([0, 0, 1, 2], np.float32)
    if name == "BF16":
        raw = (values.view(np.uint32) >> 16).astype(np.uint16).tobytes()
        header = {"weight_grad/a": {"dtype": "BF16", "shape": [4], "data_offsets": [0, 8]}}
        (tmp_path / "g.safetensors").write_bytes(safetensors_bytes(header, raw))
    else:
        save_file({"weight_grad/a": values.astype(dtype)}, tmp_path / "g.safetensors")
    out, _ = run("analyze", tmp_path / "g.safetensors", "--format", "bfloat16" if name == "BF16" else "fp16")
    assert f"1 of these tensors was computed in {name}: values that underflowed" in out
    assert "50.0 % of their values are zero" in " ".join(out.split())
    assert f"Computed in {name}: zeros may be flushed values" in out


def test_small_shares_are_never_printed_as_nothing(tmp_path):
    values = np.ones(200000, np.float32)
    values[0] = 2.0**-30
    save_file({"weight_grad/a": values}, tmp_path / "g.safetensors")
    out, _ = run("analyze", tmp_path / "g.safetensors")
    assert "< 0.01 %" in out and "0.00 %" not in out


BAD_USAGE = [
    ["analyze"],
    ["analyze", "x", "--loss-scale", "0"],
    ["analyze", "x", "--loss-scale", "nan"],
    ["analyze", "x", "--loss-scale", "many"],
    ["analyze", "x", "--step", "1:2:3"],
    ["analyze", "x", "--format", "binary15"],
    ["analyze", "x", "--role", "no-equals"],
    ["analyze", "x", "--role", "*=gradient"],
    ["recommend", "x", "--headroom", "-1"],
    ["recommend", "x", "--target-underflow", "2"],
    ["report", "x"],
    ["analyze", "x", "--step", "2:1"],
    ["analyze", "x", "--json", "-", "--csv", "-"],
    ["analyze", "x", "--json", "x"],
    ["recommend", "x", "--json", "x/run.json"],
    ["nothing"],
    [],
]


@pytest.mark.parametrize("arguments", BAD_USAGE, ids=lambda a: " ".join(a) or "nothing")
def test_bad_usage_exits_with_2(arguments):
    _, err = run(*arguments, expect=2)
    assert err.strip()


def safetensors_bytes(header, data=b"", claimed=None):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text) if claimed is None else claimed) + text + data


TENSOR = {"dtype": "F32", "shape": [4], "data_offsets": [0, 16]}
BAD_FILES = {
    "truncated.safetensors": (safetensors_bytes({"t": TENSOR}, bytes(8)), ["'t'"]),
    "overlap.safetensors": (
        safetensors_bytes({"t": TENSOR, "u": {**TENSOR, "data_offsets": [8, 24]}}, bytes(24)),
        ["'u'"],
    ),
    "oversized.safetensors": (safetensors_bytes({"t": TENSOR}, claimed=2**60), ["header"]),
    "nojson.safetensors": (safetensors_bytes(b"{not json", bytes(16)), ["JSON"]),
    "bomb.safetensors": (
        safetensors_bytes({"t": {"dtype": "F32", "shape": [2**40], "data_offsets": [0, 2**42]}}),
        ["'t'"],
    ),
    "empty.safetensors": (b"", []),
    "unknown.bin": (b"what is this file?", ["without any line that Halfscope knows", "halfscope logs --kinds"]),
    "cut.npy": (b"\x93NUMPY\x01\x00\xff\xff{", []),
    "cut.npz": (b"PK\x03\x04 not a zip", []),
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_bad_files_exit_with_1_and_one_line(tmp_path, name):
    data, words = BAD_FILES[name]
    (tmp_path / name).write_bytes(data)
    out, err = run("analyze", tmp_path / name, expect=1)
    assert out == "" and err.count("\n") == 1 and name in err
    for word in words:
        assert word in err


def test_old_files_of_torch_save_say_how_to_convert(tmp_path):
    torch = pytest.importorskip("torch")
    torch.save({"w": torch.ones(3)}, tmp_path / "m.pt", _use_new_zipfile_serialization=False)
    _, err = run("analyze", tmp_path / "m.pt", expect=1)
    assert err.count("\n") == 1 and "torch.save" in err and "safetensors.torch.save_file" in err
    line = re.search(r"safetensors\.torch\.save_file\(.*\)", err).group(0)
    import safetensors.torch

    exec(line, {"torch": torch, "safetensors": safetensors})
    assert "weight_grad" in run("analyze", tmp_path / "m.safetensors", "--role", "w=weight_grad", "--json", "-")[0]


def test_empty_folders_and_files_say_what_is_wanted(tmp_path):
    (tmp_path / "empty").mkdir()
    _, err = run("analyze", tmp_path / "empty", expect=1)
    assert "holds no file that Halfscope can read; 'halfscope logs --kinds' lists what it reads" in err
    np.savez(tmp_path / "empty.npz")
    _, err = run("analyze", tmp_path / "empty.npz", expect=1)
    assert "holds no tensor of floating-point values" in err and "--recorded-scale" not in err


def test_a_step_that_is_none_names_the_nearest(tmp_path):
    for step in (3, 10, 20):
        save_file({"weight_grad/a": gradients(4)}, tmp_path / f"g-step{step}.safetensors")
    _, err = run("analyze", tmp_path, "--step", "12", expect=1)
    assert "it has 3 steps from 3 to 20, the nearest are 10 and 20" in err
    _, err = run("analyze", tmp_path, "--step", "21:", expect=1)
    assert "it has 3 steps from 3 to 20\n" in err


def test_formats_by_other_names(log):
    for name, own in (("float16", "binary16"), ("BF16", "bfloat16"), ("fp32", "binary32")):
        assert valid_json_of("analyze", log, "--format", name)["format"] == own
    for name, words in (("fp8", "use e4m3 or e5m2"), ("mxfp8", "--formats"), ("int4", "binary16 (fp16, half")):
        _, err = run("analyze", log, "--format", name, expect=2)
        assert words in err


def test_a_target_in_percent(log):
    wanted = valid_json_of("recommend", log, "--target-underflow", "0.003")
    assert valid_json_of("recommend", log, "--target-underflow", "0.3%") == wanted
    run("recommend", log, "--target-underflow", "300%", expect=2)


def test_pickled_objects_are_refused(tmp_path):
    np.save(tmp_path / "o.npy", np.array([{}], dtype=object), allow_pickle=True)
    _, err = run("analyze", tmp_path / "o.npy", expect=1)
    assert "pickle" in err


def test_unknown_dtypes_are_named_and_skipped(tmp_path):
    save_file({"count": np.arange(3), "grad": gradients(10)}, tmp_path / "g.safetensors")
    _, err = run("analyze", tmp_path / "g.safetensors")
    assert "'count'" in err and "I64" in err


def test_folder_without_manifest(tmp_path):
    (tmp_path / "tensors").mkdir()
    save_file({"a": gradients(3)}, tmp_path / "tensors" / "step-000001.safetensors")
    _, err = run("analyze", tmp_path, expect=1)
    assert "run.json" in err


def test_manifest_of_a_newer_schema(tmp_path):
    (tmp_path / "run.json").write_text('{"schema": 99}')
    _, err = run("analyze", tmp_path, expect=1)
    assert "99" in err and "schema" in err


def test_unwritable_output_names_the_path(log):
    for arguments in (["analyze", log, "--json"], ["report", log, "--out"]):
        _, err = run(*arguments, "/nowhere/at/all/out", expect=1)
        assert "/nowhere/at/all/out" in err


def test_an_output_never_replaces_its_input(log):
    before = log.read_bytes()
    for arguments in (["analyze", log, "--json"], ["analyze", log, "--csv"], ["report", log, "--out"]):
        _, err = run(*arguments, log, expect=2)
        assert "damage" in err and log.read_bytes() == before


def test_full_disk_behind_stdout_is_an_error(log):
    for arguments in (["analyze", log], ["analyze", log, "--json", "-"], ["recommend", log]):
        with open("/dev/full", "w") as full:
            done = subprocess.run([PROGRAM, *map(str, arguments)], stdout=full, stderr=subprocess.PIPE, text=True)
        assert done.returncode == 1 and "stdout" in done.stderr


def test_nothing_selected_says_what_is_there(log):
    _, err = run("analyze", log, "--tensor", "nope", expect=1)
    assert "weight_grad/a" in err and "--tensor" in err


def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    _, err = run("analyze", tmp_path / "pipe", expect=1)
    assert "regular file" in err


def test_a_pipe_in_a_run_is_not_waited_for(tmp_path):
    (tmp_path / "alone").mkdir()
    (tmp_path / "ranks/rank-0000").mkdir(parents=True)
    for run_json in (tmp_path / "alone/run.json", tmp_path / "ranks/rank-0000/run.json"):
        os.mkfifo(run_json)
        for folder in {run_json.parent, tmp_path / run_json.relative_to(tmp_path).parts[0]}:
            assert f"{run_json}: is a pipe or device" in run("analyze", folder, expect=1)[1]
    run_log = ROOT / "data/digits-cnn"
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        for file in run_log.iterdir():
            (tmp_path / name / file.name).symlink_to(file)
    os.mkfifo(tmp_path / "b/operations.json")
    _, err = run("compare", tmp_path / "a", tmp_path / "b", expect=1)
    assert "b/operations.json: is a pipe or device" in err


def anonymous_peak_mib(arguments):
    """Largest anonymous memory of a run: pages of mapped files do not count."""
    process = subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    peak = 0
    while process.poll() is None:
        try:
            status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
        except OSError:
            break
        peak = max([peak] + [int(l.split()[1]) for l in status.splitlines() if l.startswith("RssAnon")])
        time.sleep(0.002)
    assert process.wait() == 0
    return peak / 1024


def test_memory_is_bounded_by_the_tables(tmp_path):
    """1 GiB of values, sparse on disk, in one tensor."""
    path = tmp_path / "large.safetensors"
    header = json.dumps({"weight_grad/a": {"dtype": "F32", "shape": [2**28], "data_offsets": [0, 2**30]}})
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(header)) + header.encode())
        file.write(gradients(2**20).tobytes())
        file.truncate(8 + len(header) + 2**30)
    assert anonymous_peak_mib([PROGRAM, "analyze", str(path)]) < 64
