# SPDX-License-Identifier: Apache-2.0
"""halfscope.wandb.log(): what an offline run of wandb holds afterwards."""
import json
import struct
import sys
import time

import pytest

import halfscope
import halfscope.wandb
from frameworks import need
from program import DIGITS, ROOT

HALVED = ROOT / "tests/data/tensorboard/tensorflow-1.tfevents"  # histograms: counts have bounds
BLOCK = 32768


@pytest.fixture
def run(tmp_path, monkeypatch):
    """A run without a network, in a folder of the test."""
    wandb = need("wandb")
    monkeypatch.setenv("WANDB_SILENT", "true")
    monkeypatch.setenv("WANDB_ERROR_REPORTING", "false")  # needs a network
    with wandb.init(mode="offline", dir=tmp_path, settings=wandb.Settings(console="off")) as run:
        yield run


def records(path):
    """The records of a file that `wandb sync` would send: LevelDB's log after a header of 7 bytes."""
    data, at, parts = path.read_bytes(), 7, b""
    while at + 7 <= len(data):
        if BLOCK - at % BLOCK < 7:  # no header fits
            at += BLOCK - at % BLOCK
            continue
        length, kind = struct.unpack_from("<HB", data, at + 4)
        if at + 7 + length > len(data):
            return  # the rest is not written yet
        parts += data[at + 7:at + 7 + length]
        at += 7 + length
        if kind in (1, 4):  # whole, or the last part
            yield parts
            parts = b""


def values(items):
    return {".".join(item.nested_key) or item.key: json.loads(item.value_json) for item in items}


def written(run, folder):
    """({key: value} of the summary, [{key: value} of a step])"""
    from wandb.proto.wandb_internal_pb2 import Record

    run.finish()
    [log] = folder.rglob("*.wandb")
    found, end = [], time.monotonic() + 30
    while not any(record.HasField("exit") for record in found):  # written after finish() returns
        assert time.monotonic() < end
        time.sleep(0.05)
        found = [Record.FromString(data) for data in records(log)]
    return (values(item for record in found for item in record.summary.update),
            [values(record.history.item) for record in found if record.history.item])


def test_headline_numbers_and_page_are_in_the_run(run, tmp_path):
    advice = halfscope.recommend(DIGITS)
    run.log({"loss": 1.0})
    halfscope.wandb.log(advice)
    run.log({"loss": 0.5})
    summary, history = written(run, tmp_path)
    assert summary["halfscope/headline"] == advice.answer.headline
    assert summary["halfscope/static_scale"] == advice.static_scale == 32768
    assert summary["halfscope/flushed_at_1"] == advice.flushed_at_1.share
    assert summary["halfscope/nonfinite_steps"] == 0
    assert "halfscope/lowest" not in summary  # the log has none
    assert [row["_step"] for row in history] == [0, 1]  # the loop's steps are as without
    page = next(tmp_path.rglob("*.html")).read_text()
    assert "A static loss scale can be up to 32768" in page and "normalize.css" not in page
    assert any(key.startswith("halfscope/page") for key in history[1])


def test_an_analysis_and_a_report_under_a_name(run, tmp_path):
    found = halfscope.analyze(DIGITS)
    halfscope.wandb.log(found, name="every tensor")
    halfscope.wandb.log(halfscope.report(DIGITS), run=run)
    summary, _ = written(run, tmp_path)
    flushed = sum(t.flushed_to_zero for t in found.tensors if t.role == "weight_grad")
    assert summary["every tensor/weight_grad/flushed_to_zero"] == flushed > 0
    assert summary["every tensor/headline"] == str(found).splitlines()[0]
    assert summary["halfscope/static_scale"] == 32768


def test_numbers_that_are_not_exact_are_bounds(run, tmp_path):
    halfscope.wandb.log(found := halfscope.analyze(HALVED))
    summary, _ = written(run, tmp_path)
    low, high = (sum(t.flushed_to_zero[end] if isinstance(t.flushed_to_zero, list) else t.flushed_to_zero
                     for t in found.tensors) for end in (0, 1))
    assert low < high
    assert summary["halfscope/weight_grad/flushed_to_zero_low"] == low
    assert summary["halfscope/weight_grad/flushed_to_zero_high"] == high


def test_without_a_run_the_error_says_what_to_do(monkeypatch):
    need("wandb")
    with pytest.raises(halfscope.BadInput, match=r"no run to log to: call wandb.init\(\) first"):
        halfscope.wandb.log(halfscope.recommend(DIGITS))
    with pytest.raises(TypeError, match="result is 3, expected that of halfscope.recommend"):
        halfscope.wandb.log(3)
    with pytest.raises(TypeError, match="result is Policies|result is list"):
        halfscope.wandb.log(halfscope.policies(DIGITS))


def test_without_wandb_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "wandb", None)
    with pytest.raises(ImportError, match=r"halfscope.wandb.log\(\) needs wandb: pip install wandb"):
        halfscope.wandb.log(halfscope.recommend(DIGITS))
