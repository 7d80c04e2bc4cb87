# SPDX-License-Identifier: Apache-2.0
"""Event files of other tools, read by `halfscope analyze`: NumPy knows the values, tensorboard's own
reader the buckets. torch and tensorboardX write theirs here; TensorFlow's are in
tests/data/tensorboard, with the script that wrote them."""

import json
import struct
import subprocess

import numpy as np
import pytest
from program import BUILD, PROGRAM, ROOT
import tensorboard_tensors as tensors
from tensorboard.backend.event_processing import event_accumulator
from tensorboard.util import tensor_util

GOLDEN = ROOT / "tests" / "data" / "tensorboard"
EVERYTHING = {"histograms": 0, "tensors": 0, "scalars": 0}


def run(*arguments):
    return subprocess.run([PROGRAM, "analyze", *map(str, arguments)], capture_output=True,
                          text=True)


def analyze(log, *options):
    done = run(log, "--json", "-", *options)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def tensors_of(log, *options):
    """{name: entry}, the name without what is before the first slash"""
    return {entry["name"].split("/", 1)[-1]: entry
            for entry in analyze(log, *options)["tensors"]}


def only(log, *options):
    (entry,) = analyze(log, *options)["tensors"]
    return entry


def buckets(log):
    """{tag: rows of left edge, right edge and count} of the last step, by tensorboard itself"""
    events = event_accumulator.EventAccumulator(str(log), size_guidance=EVERYTHING)
    events.Reload()
    rows = {}
    for tag in events.Tags()["histograms"]:
        histogram = events.Histograms(tag)[-1].histogram_value
        limits = [-np.finfo(float).max, *histogram.bucket_limit]
        rows[tag] = list(zip(limits, limits[1:], histogram.bucket))
    for tag in events.Tags()["tensors"]:
        if events.SummaryMetadata(tag).plugin_data.plugin_name == "histograms":
            rows[tag] = tensor_util.make_ndarray(events.Tensors(tag)[-1].tensor_proto).tolist()
    return rows


def writers():
    from torch.utils import tensorboard as torch_tensorboard
    yield "torch", torch_tensorboard.SummaryWriter
    import tensorboardX
    yield "tensorboardX", tensorboardX.SummaryWriter


@pytest.fixture(params=list(writers()), ids=lambda param: param[0])
def writer_class(request):
    return request.param[1]


@pytest.fixture(autouse=True)
def greater_of_old_numpy(monkeypatch):
    """PyTorch 1.13 asks np.greater for int32, which NumPy refuses from 1.24 on."""
    greater = np.greater
    monkeypatch.setattr(np, "greater", lambda a, b, dtype=None, **options: greater(
        a, b, **options) if dtype is None else greater(a, b, **options).astype(dtype))


def write(writer_class, folder, values_of, **options):
    writer = writer_class(str(folder))
    for name, values in values_of.items():
        writer.add_histogram("gradients/" + name, values, 0, **options)
    writer.close()


BINS = [{}, {"max_bins": 100}, {"max_bins": 7}, {"bins": "auto"}]


@pytest.mark.parametrize("options", BINS, ids=str)
def test_finite_tensors(writer_class, tmp_path, options):
    everything = tensors.finite_tensors()
    if "bins" in options:  # np.histogram wants fewer buckets than memory holds
        everything = {name: everything[name] for name in ("random", "log_normal_high", "zeros")}
    write(writer_class, tmp_path, everything, **options)
    found, rows = tensors_of(tmp_path), buckets(tmp_path)
    assert set(found) == set(everything)
    for name, values in everything.items():
        assert found[name]["total"] == values.size and found[name]["nan"] == 0
        assert found[name]["inf"] == 0
        tensors.check(found[name], values, rows["gradients/" + name])
        tensors.check_extremes(found[name], values)


def test_nonfinite_tensors(writer_class, tmp_path):
    everything = tensors.nonfinite_tensors()
    write(writer_class, tmp_path, everything)
    found, rows = tensors_of(tmp_path), buckets(tmp_path)
    for name, values in everything.items():
        left_out = values.size - sum(count for *_, count in rows["gradients/" + name])
        assert found[name]["total"] == values.size
        tensors.check(found[name], values, rows["gradients/" + name], left_out)
    assert found["infinities"]["inf"] == [2, 3] and found["infinities"]["nan"] == 0
    assert found["inf"]["inf"] == 1 and found["inf"]["nan"] == 0
    assert found["nan"]["nan"] == 1 and found["nan"]["inf"] == 0
    assert found["both"]["nan"] == [1, 3] and found["both"]["inf"] == [0, 2]
    beyond = found["beyond"]
    assert beyond["nan"] == beyond["inf"] == 0 and beyond["overflow"] == 2
    tensors.check_extremes(beyond, tensors.nonfinite_tensors()["beyond"])


def test_raw_histograms(writer_class, tmp_path):
    values = tensors.random(11).astype(np.float64)
    edges = np.array([-10.0, -1.0, -2.0**-10, 0.0, 2.0**-12, 3.0, 10.0])
    counts = np.histogram(values, edges)[0]
    writer = writer_class(str(tmp_path))
    writer.add_histogram_raw("gradients/raw", min=values.min(), max=values.max(), num=values.size,
                             sum=values.sum(), sum_squares=(values**2).sum(),
                             bucket_limits=edges[1:].tolist(), bucket_counts=counts.tolist(),
                             global_step=0)
    writer.close()
    rows = list(zip(edges, edges[1:], counts))
    tensors.check(only(tmp_path), values, rows)
    tensors.check_extremes(only(tmp_path), values)


@pytest.mark.parametrize("file", ["tensorflow-1.tfevents", "tensorflow-2.tfevents"])
def test_finite_tensors_of_tensorflow(file):
    found, rows = tensors_of(GOLDEN / file), buckets(GOLDEN / file)
    for name, values in tensors.finite_tensors().items():
        assert found[name]["total"] == values.size and found[name]["nan"] == 0
        tensors.check(found[name], values, rows["gradients/" + name])
        tensors.check_extremes(found[name], values)


def test_wide_buckets_do_not_identify_underflow():
    found = tensors_of(GOLDEN / "tensorflow-2.tfevents")
    for name in ("random", "log_normal_wide"):
        assert found[name]["hidden_by_buckets"] and not found[name]["underflow_identifiable"]
    for name in ("equal", "positive"):  # the least value is known, and it is above
        assert "hidden_by_buckets" not in found[name]
    legacy = tensors_of(GOLDEN / "tensorflow-1.tfevents")
    assert not any("hidden_by_buckets" in tensor for tensor in legacy.values())
    (gaps,) = analyze(GOLDEN / "tensorflow-2.tfevents")["could_not_tell"]
    assert "underflow" in gaps["gaps"]


def test_nonfinite_tensors_of_tensorflow_2():
    """Where an edge is infinite or NaN, nothing is known of the values but that some is."""
    log = GOLDEN / "tensorflow-2.tfevents"
    found = tensors_of(log)
    for name in tensors.nonfinite_tensors():
        if name == "beyond":
            continue
        assert "nan" not in found[name] and "inf" not in found[name]
        values = tensors.nonfinite_tensors()[name]
        for entry in found[name]["by_scale"]:
            for key, true in zip(tensors.CLASSES, tensors.truth(values, entry["log2_scale"])):
                assert tensors.bounds(entry[key])[0] <= true
    beyond = tensors.nonfinite_tensors()["beyond"]
    tensors.check(found["beyond"], beyond, buckets(log)["gradients/beyond"])
    tensors.check_extremes(found["beyond"], beyond)


def test_scalars_of_tensorflow_2():
    log = GOLDEN / "tensorflow-2.tfevents"
    twice = tensors_of(log, "--recorded-scale", "my/scale", "--tensor", "*twice")["twice"]
    assert twice["steps"] == [0, 1]  # the second has no metadata
    largest = max(np.abs(tensors.random(seed)).max() for seed in (7, 8))
    assert twice["max_abs"] == np.float64(largest) / 1024


def test_the_recorded_scale_is_a_scalar_of_the_log(writer_class, tmp_path):
    values = tensors.log_normal(12, -8, 2)
    writer = writer_class(str(tmp_path))
    for step, scale in enumerate((1024.0, 512.0)):
        writer.add_scalar("amp/my-scale", scale, step)
        writer.add_histogram("gradients/w", values * np.float32(scale), step)
    writer.close()
    found = only(tmp_path, "--recorded-scale", "amp/my-scale")
    assert found["max_abs"] == np.abs(values.astype(np.float64)).max()
    wrong = run(tmp_path, "--recorded-scale", "amp/other")
    assert wrong.returncode == 1 and "amp/my-scale" in wrong.stderr


@pytest.mark.parametrize("dtype, field, stored", [
    ("DT_HALF", "half_val", 0x42800000),  # of PyTorch's add_tensor: the bits of binary32
    ("DT_HALF", "half_val", 0x5400),      # of TensorFlow
    ("DT_BFLOAT16", "half_val", 0x42800000),
    ("DT_BFLOAT16", "half_val", 0x4280),
    ("DT_HALF", "tensor_content", b"\x00\x54"),
    ("DT_FLOAT", "float_val", 64.0),
    ("DT_DOUBLE", "double_val", 64.0),
    ("DT_INT64", "int64_val", 64),
])
def test_scalars_as_tensors(tmp_path, dtype, field, stored):
    from tensorboard.compat.proto import summary_pb2, tensor_pb2, types_pb2
    from torch.utils.tensorboard import SummaryWriter
    values = tensors.random(13)
    tensor = tensor_pb2.TensorProto(dtype=getattr(types_pb2, dtype))
    if field == "tensor_content":
        tensor.tensor_content = stored
    else:
        getattr(tensor, field).append(stored)
    writer = SummaryWriter(str(tmp_path))
    value = summary_pb2.Summary.Value(tag="scale", tensor=tensor)
    value.metadata.plugin_data.plugin_name = "tensor"
    writer._get_file_writer().add_summary(summary_pb2.Summary(value=[value]), 0)
    writer.add_histogram("gradients/w", values * 64, 0)
    writer.close()
    found = only(tmp_path, "--recorded-scale", "scale")
    assert found["max_abs"] == np.abs(values.astype(np.float64)).max()


def test_a_restarted_run(tmp_path):
    from torch.utils.tensorboard import SummaryWriter
    first, again = tensors.random(14), tensors.random(15)
    writer = SummaryWriter(str(tmp_path))
    for step in range(6):
        writer.add_histogram("gradients/w", first * 2, step)
    writer.close()
    writer = SummaryWriter(str(tmp_path), purge_step=3, filename_suffix=".again")
    writer.add_histogram("gradients/w", again, 3)
    writer.add_histogram("gradients/w", first, 1)  # written again: the last one holds
    writer.close()
    found = only(tmp_path)
    assert found["steps"] == [0, 1, 2, 3]
    largest = {step: only(tmp_path, "--step", str(step))["max_abs"] for step in (1, 2, 3)}
    assert largest[1] == np.abs(first.astype(np.float64)).max()
    assert largest[2] == np.abs(first.astype(np.float64) * 2).max()
    assert largest[3] == np.abs(again.astype(np.float64)).max()


def records(data):
    """(offset, end) of every record"""
    at = 0
    while at < len(data):
        (length,) = struct.unpack_from("<Q", data, at)
        yield at, at + 16 + length
        at += 16 + length


def test_damage_and_cut_tails_are_told(tmp_path):
    from torch.utils.tensorboard import SummaryWriter
    writer = SummaryWriter(str(tmp_path / "whole"))
    for step in range(5):
        writer.add_histogram("gradients/w", tensors.random(step), step)
    writer.close()
    (file,) = (tmp_path / "whole").iterdir()
    data = bytearray(file.read_bytes())
    places = list(records(data))
    damaged = places[2]  # after the file's version: of step 1
    data[damaged[0] + 40] ^= 1
    (tmp_path / "events.out.tfevents.damaged").write_bytes(data[:-3])
    done = run(tmp_path / "events.out.tfevents.damaged", "--json", "-")
    assert done.returncode == 0
    assert [entry["step"] for entry in json.loads(done.stdout)["tensors"][0]["per_step"]] == \
        [0, 2, 3]
    assert f"bytes {damaged[0]} to {damaged[1]} skipped" in done.stderr
    assert "cut short" in done.stderr


def test_a_file_is_known_by_its_content(tmp_path):
    import shutil
    shutil.copy(GOLDEN / "tensorflow-1.tfevents", tmp_path / "renamed.bin")
    assert len(analyze(tmp_path / "renamed.bin")["tensors"]) == len(tensors.finite_tensors())
    assert len(analyze(tmp_path)["tensors"]) == len(tensors.finite_tensors())
    (tmp_path / "not.tfevents").write_bytes(b"no event file, whatever its name says")
    alone = run(tmp_path / "not.tfevents")
    assert alone.returncode == 1 and "'halfscope logs --kinds' lists what it reads" in alone.stderr


def test_folders_of_runs_are_named_not_added(tmp_path):
    for run_name in ("train", "validation"):
        (tmp_path / run_name).mkdir()
        (tmp_path / run_name / "events.out.tfevents.1").write_bytes(
            (GOLDEN / "tensorflow-1.tfevents").read_bytes())
    done = run(tmp_path)
    assert done.returncode == 1 and str(tmp_path / "train") in done.stderr
    (tmp_path / "events.out.tfevents.1").write_bytes(
        (GOLDEN / "tensorflow-2.tfevents").read_bytes())
    done = run(tmp_path, "--json", "-")
    assert "not read" in done.stderr and str(tmp_path / "train") in done.stderr
    assert len(json.loads(done.stdout)["tensors"]) == len(tensors_of(GOLDEN /
                                                                    "tensorflow-2.tfevents"))


@pytest.fixture(scope="module")
def run_log(tmp_path_factory):
    folder = tmp_path_factory.mktemp("log") / "run"
    subprocess.run([BUILD / "bin" / "write_sample_log", folder], check=True,
                   stdout=subprocess.DEVNULL)
    return folder


def test_our_own_run_log_agrees_with_itself(run_log):
    (file,) = run_log.glob("*tfevents*")
    exact = {entry["name"]: entry for entry in analyze(run_log, "--recorded-scale", "1")["tensors"]
             if entry["name"].startswith("weight_grad")}
    read = {entry["name"]: entry for entry in analyze(file, "--recorded-scale", "1")["tensors"]}
    assert exact and set(exact) <= set(read)
    for name, entry in exact.items():
        assert read[name]["steps"] == entry["steps"]
        assert read[name]["total"] == entry["total"] and read[name]["zero"] == entry["zero"]
        for mine, own in zip(read[name]["by_scale"], entry["by_scale"]):
            for key in tensors.CLASSES:
                low, high = tensors.bounds(mine[key])
                own_low, own_high = tensors.bounds(own[key])
                assert low <= own_low and own_high <= high, (name, key)
