# SPDX-License-Identifier: Apache-2.0
"""TensorBoard's own reader opens our run logs, and finds in them what was written.

The log is made by the C++ program write_sample_log, which also says what it wrote; the sampled
tensors in it are counted here with NumPy, so that tables and histograms have a second judge, written
from docs/run-log.md alone.
"""
import json
import struct
import subprocess

import numpy as np
import pytest
from tensorboard import context
from tensorboard.backend.event_processing import data_provider
from tensorboard.backend.event_processing import event_accumulator
from tensorboard.backend.event_processing import plugin_event_multiplexer
from tensorboard.data import provider
from tensorboard.util import tensor_util

from program import BUILD

EVERYTHING = {kind: 0 for kind in ("scalars", "histograms", "compressedHistograms", "tensors",
                                   "images", "audio")}
PLUGIN = "halfscope"


@pytest.fixture(scope="module")
def sample(tmp_path_factory):
    """(folder of the log, what the writer says it holds)"""
    program = BUILD / "bin" / "write_sample_log"
    assert program.exists(), f"{program} is missing: build the target write_sample_log first"
    folder = tmp_path_factory.mktemp("log") / "run"
    said = subprocess.run([program, folder], check=True, capture_output=True, text=True).stdout
    return folder, json.loads(said)


@pytest.fixture(scope="module")
def accumulator(sample):
    events = event_accumulator.EventAccumulator(str(sample[0]), size_guidance=EVERYTHING)
    events.Reload()
    return events


@pytest.fixture(scope="module")
def tensorboard_data(sample):
    runs = plugin_event_multiplexer.EventMultiplexer(
        tensor_size_guidance={"scalars": 0, "histograms": 0, PLUGIN: 0})
    runs.AddRunsFromDirectory(str(sample[0].parent))
    runs.Reload()
    return data_provider.MultiplexerDataProvider(runs, str(sample[0].parent))


def read_safetensors(file):
    data = file.read_bytes()
    (size,) = struct.unpack_from("<Q", data)
    header = json.loads(data[8:8 + size])
    header.pop("__metadata__", None)
    for name, entry in header.items():
        assert entry["dtype"] == "F32"
        begin, end = entry["data_offsets"]
        yield name, np.frombuffer(data[8 + size + begin:8 + size + end], "<f4")


def sampled(folder, name):
    """step -> values"""
    return {int(file.stem.removeprefix("step-")): values
            for file in sorted((folder / "tensors").glob("step-*.safetensors"))
            for tensor, values in read_safetensors(file) if tensor == name}


def decode(words):
    """docs/run-log.md, "The binade table", in Python."""
    words = [int(word) for word in words]
    assert words[0] == 1
    cuts = words[2:2 + words[1]]
    rest = words[2 + words[1]:]
    keys = ("zero", "negative_zero", "nan", "positive_infinity", "negative_infinity",
            "largest_exponent", "largest_fraction", "smallest_exponent", "smallest_fraction",
            "significant_bits", "lowest_bit", "rows")
    table = dict(zip(keys, rest))
    rest = rest[len(keys):]
    width = len(cuts) + 3  # exponent, segments, negative
    assert len(rest) == table["rows"] * width
    table["cuts"] = cuts
    table["rows"] = [(rest[i], rest[i + 1:i + width - 1], rest[i + width - 1])
                     for i in range(0, len(rest), width)]
    return table


def count(values, cuts):
    """The rows of the table of float32 values, by NumPy."""
    finite = values[np.isfinite(values) & (values != 0)].astype(np.float64)
    significand, exponent = np.frexp(np.abs(finite))
    exponent -= 1
    fraction = ((2 * significand - 1) * 2.0**52).astype(np.int64)
    segment = np.searchsorted(np.array(cuts, np.int64), fraction, side="right")
    rows = []
    for e in np.unique(exponent):
        here = exponent == e
        rows.append((int(e), np.bincount(segment[here], minlength=len(cuts) + 1).tolist(),
                     int(np.count_nonzero(finite[here] < 0))))
    return rows


def numbers(said):
    return [(step, float.fromhex(value)) for step, value in said]


def test_scalars_are_there_as_binary32(sample, accumulator):
    said = sample[1]["scalars"]
    assert set(accumulator.Tags()["scalars"]) == set(said)
    for tag, values in said.items():
        read = [(event.step, event.value) for event in accumulator.Scalars(tag)]
        assert read == [(step, float(np.float32(value))) for step, value in numbers(values)], tag


def test_scalars_binary32_cannot_hold_are_there_as_binary64(sample, accumulator):
    inexact = {tag: values for tag, values in sample[1]["scalars"].items()
               if any(np.float32(value) != value for _, value in numbers(values))}
    assert "learning_rate" in inexact and "loss_scale" not in inexact
    exact_tags = {tag for tag in accumulator.Tags()["tensors"] if tag.startswith("exact/")}
    assert exact_tags == {"exact/" + tag for tag in inexact}
    for tag, values in inexact.items():
        read = {event.step: tensor_util.make_ndarray(event.tensor_proto).item()
                for event in accumulator.Tensors("exact/" + tag)}
        assert read == {step: value for step, value in numbers(values)
                        if np.float32(value) != value}


def test_tables_are_int64_tensors_equal_to_what_was_written(sample, accumulator):
    for name, records in sample[1]["words"].items():
        events = accumulator.Tensors("binades/" + name)
        arrays = [(event.step, tensor_util.make_ndarray(event.tensor_proto)) for event in events]
        assert all(array.dtype == np.int64 and array.ndim == 1 for _, array in arrays)
        assert [[step, array.tolist()] for step, array in arrays] == records
        plugin = accumulator.SummaryMetadata("binades/" + name).plugin_data.plugin_name
        assert plugin == PLUGIN


def test_tables_count_what_numpy_counts(sample, accumulator):
    folder, said = sample
    for name in said["words"]:
        values_at = sampled(folder, name)
        assert set(values_at) == {0, 4, 8}
        for event in accumulator.Tensors("binades/" + name):
            table = decode(tensor_util.make_ndarray(event.tensor_proto))
            values = values_at[event.step]
            magnitudes = np.abs(values[np.isfinite(values) & (values != 0)]).astype(np.float64)
            assert table["zero"] == np.count_nonzero(values == 0)
            assert table["negative_zero"] == np.count_nonzero((values == 0) & np.signbit(values))
            assert table["nan"] == np.count_nonzero(np.isnan(values))
            assert table["positive_infinity"] == np.count_nonzero(values == np.inf)
            assert table["negative_infinity"] == np.count_nonzero(values == -np.inf)
            for key, extreme in (("largest", magnitudes.max()), ("smallest", magnitudes.min())):
                read = (1 + table[key + "_fraction"] * 2.0**-52) * 2.0**table[key + "_exponent"]
                assert read == extreme
            assert table["rows"] == count(values, table["cuts"])


def test_statistics_are_json(sample, accumulator):
    folder, said = sample
    for name in said["words"]:
        for event in accumulator.Tensors("statistics/" + name):
            text = tensor_util.make_ndarray(event.tensor_proto).item()
            statistics = json.loads(text)
            values = sampled(folder, name)[event.step].astype(np.float64)
            values = values[np.isfinite(values)]
            assert statistics["shape"] == [5, 100]
            assert statistics["source_dtype"] == "F32"
            assert statistics["state"] == "scaled" and statistics["scale"] == 65536
            assert statistics["max_abs"] == np.abs(values).max()
            assert statistics["mean"] == pytest.approx(values.mean(), rel=1e-12)
            assert statistics["sum_squares"] == pytest.approx((values**2).sum(), rel=1e-12)


def test_histograms_are_what_numpy_counts(sample, accumulator):
    folder, said = sample
    assert set(accumulator.Tags()["histograms"]) == set(said["words"])
    for name in said["words"]:
        values_at = sampled(folder, name)
        events = accumulator.Histograms(name)
        assert [event.step for event in events] == [0, 4, 8]
        for event in events:
            histogram, values = event.histogram_value, values_at[event.step].astype(np.float64)
            finite = values[np.isfinite(values)]
            assert histogram.num == values.size
            assert sum(histogram.bucket) == finite.size
            assert histogram.bucket[0] == 0
            assert histogram.min <= finite.min() and histogram.max >= finite.max()
            limits = histogram.bucket_limit
            assert all(left < right for left, right in zip(limits, limits[1:]))
            for left, right, counted in zip(limits, limits[1:], histogram.bucket[1:]):
                if left < 0 < right:  # zero's bucket
                    inside = finite == 0
                elif left >= 0:
                    inside = (finite >= left) & (finite < right)
                else:
                    inside = (finite > left) & (finite <= right)
                assert counted == np.count_nonzero(inside), (name, event.step, left, right)


def test_tensorboard_pages_find_their_data(sample, tensorboard_data):
    """The way TensorBoard's dashboards read: through its data provider."""
    said = sample[1]
    request = {"ctx": context.RequestContext(), "experiment_id": ""}
    every = {**request, "downsample": 10000}
    plugins = set(tensorboard_data.list_plugins(**request))
    assert {"scalars", "histograms", PLUGIN} <= plugins

    scalars = tensorboard_data.read_scalars(plugin_name="scalars", **every)["run"]
    assert set(scalars) == set(said["scalars"])
    for tag, values in said["scalars"].items():
        read = [(datum.step, datum.value) for datum in scalars[tag]]
        assert read == [(step, float(np.float32(value))) for step, value in numbers(values)], tag

    histograms = tensorboard_data.read_tensors(plugin_name="histograms", **every)["run"]
    assert set(histograms) == set(said["words"])
    for name, data in histograms.items():
        values_at = sampled(sample[0], name)
        for datum in data:
            assert datum.numpy.shape[1] == 3
            assert datum.numpy[:, 2].sum() == np.count_nonzero(np.isfinite(values_at[datum.step]))

    ours = tensorboard_data.read_tensors(
        plugin_name=PLUGIN, run_tag_filter=provider.RunTagFilter(
            runs=["run"], tags=["binades/" + name for name in said["words"]]), **every)["run"]
    for name, records in said["words"].items():
        read = [[datum.step, datum.numpy.tolist()] for datum in ours["binades/" + name]]
        assert read == records


def test_a_log_cut_in_its_last_record_still_opens(sample, tmp_path):
    folder, said = sample
    (file,) = folder.glob("*tfevents*")
    (tmp_path / file.name).write_bytes(file.read_bytes()[:-3])
    events = event_accumulator.EventAccumulator(str(tmp_path), size_guidance=EVERYTHING)
    events.Reload()
    assert len(events.Scalars("loss")) == len(said["scalars"]["loss"]) - 1
