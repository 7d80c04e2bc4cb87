# SPDX-License-Identifier: Apache-2.0
"""Counts in Python: what their messages name, notes once, and the pages' lines."""

import json
import logging
import os
import pathlib
import re
import subprocess
import sys

import numpy as np
import pytest

import halfscope
from program import DIGITS, ROOT, run

STEPS, NOTE = 4, "has no manifest, so its values are treated as unscaled"


@pytest.fixture(scope="module")
def steps(tmp_path_factory):
    """A folder of tensor files."""
    folder = tmp_path_factory.mktemp("steps") / "dumps"
    folder.mkdir()
    for step in range(STEPS):
        np.savez(folder / f"step-{step}.npz", **{"weight_grad/a": np.float32([2.0 ** -(20 + step), 1])})
    return folder


@pytest.fixture(scope="module")
def cluster():
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(n_workers=1, threads_per_worker=2, processes=False,
                                  dashboard_address=None) as cluster:
        with distributed.Client(cluster) as client:
            yield client


def test_counts_that_do_not_add_are_named(steps):
    with pytest.raises(halfscope.BadInput) as error:
        halfscope.count(steps) + halfscope.count(steps, recorded_scale=8)
    first = str(error.value).splitlines()[0]
    assert first == (f"the second Counts: {steps}/step 0 was counted with other options "
                     "(--recorded-scale 8) than in the first Counts (none); count all parts of a "
                     "log with the same")
    assert "/halfscope-" not in str(error.value)


def test_a_file_among_counts_keeps_its_name(steps, tmp_path):
    halfscope.count(steps).save(tmp_path / "a.hst")
    with pytest.raises(halfscope.BadInput) as error:
        halfscope.Counts.merged([tmp_path / "a.hst", halfscope.count(steps, recorded_scale=8)])
    assert str(error.value).startswith("the second Counts: ")
    assert f"than in {tmp_path / 'a.hst'} (none)" in str(error.value)


def test_damaged_bytes_are_no_file(steps):
    data = bytes(halfscope.count(steps))
    for bad in (b"nothing", data[:-5]):
        with pytest.raises(halfscope.BadInput, match="^the Counts: "):
            halfscope.Counts(bad)


def noted(caplog):
    return [record.getMessage() for record in caplog.records if record.name == "halfscope"]


def test_a_note_of_many_parts_is_printed_once(steps, tmp_path, caplog):
    counts = halfscope.count(steps)
    assert len(noted(caplog)) == 1 and NOTE in noted(caplog)[0]
    caplog.clear()
    pytest.importorskip("pyarrow")
    counts.to_parquet(tmp_path)
    assert len(noted(caplog)) == 1


def test_dask_prints_a_note_once_and_here(steps, cluster, caplog):
    counts = halfscope.distributed.count(steps, client=cluster, progress=False)
    assert counts == halfscope.count(steps, shard=(1, 1))
    assert [NOTE in note for note in noted(caplog)] == [True, True]  # of the two calls


@pytest.mark.parametrize("shards", [None, 9])
@pytest.mark.parametrize("name, said", [
    ("none", "none: no such file or folder"), ("empty", "empty: holds no file"),
    ("text", "text: holds no file that Halfscope can read")])
def test_dask_says_once_what_is_no_log(name, said, shards, cluster, tmp_path, caplog):
    (tmp_path / "empty").mkdir()
    (tmp_path / "text").mkdir()
    (tmp_path / "text/a.txt").write_text("hello\n")
    caplog.set_level(logging.INFO)
    with pytest.raises(halfscope.BadInput, match=said):
        halfscope.distributed.count(tmp_path / name, client=cluster, shards=shards, progress=False)
    assert "Compute Failed" not in caplog.text and "Traceback" not in caplog.text


@pytest.mark.parametrize("name", ["none", "empty"])
def test_a_path_is_checked_before_a_cluster_starts(name, tmp_path, monkeypatch):
    distributed = pytest.importorskip("distributed")
    (tmp_path / "empty").mkdir()
    monkeypatch.setattr(distributed, "LocalCluster", None)
    with pytest.raises(halfscope.BadInput, match=f"{name}: (no such file|holds no file)"):
        halfscope.distributed.count(tmp_path / name)


def test_the_lines_for_dask_run(tmp_path):
    """As a script, on a local cluster."""
    pytest.importorskip("distributed")
    text = (ROOT / "docs/record.md").read_text()
    (lines,) = (block for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL)
                if "distributed" in block)
    log = DIGITS
    body = "".join(f"    {line}\n" for line in lines.replace("runs/gpt", os.fspath(log)).splitlines())
    script = tmp_path / "all.py"
    script.write_text(f"if __name__ == '__main__':\n{body}")
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{halfscope.recommend(halfscope.count(log))}\n"


def test_a_record_that_is_incomplete_says_so_as_the_page_does(steps, tmp_path):
    """docs/record.md, with its numbers."""
    page = (ROOT / "docs/record.md").read_text()
    run("count", steps, "--shard", "1/2", "--out", tmp_path / "half.hst")
    merged = run("merge", tmp_path / "half.hst", "--out", tmp_path / "half.hst")[0].splitlines()[0]
    assert merged.replace(str(steps), "runs/gpt").replace("2", "N") == "runs/gpt: N parts, N missing."
    assert "\nruns/gpt: 488 parts, 12 missing.\n" in page
    told = run("analyze", tmp_path / "half.hst")[1]
    said = f"halfscope: {tmp_path / 'half.hst'}: has 2 of the 4 parts of {steps}; merge the others"
    assert said in told
    assert "\nhalfscope: dumps.hst: has 488 of the 500 parts of dumps; merge the others" in page


def test_queries_of_one_rank_count_a_copied_gradient_once(tmp_path):
    """docs/parquet.md: where `sharded` lacks the role."""
    duckdb = pytest.importorskip("duckdb")
    pytest.importorskip("pyarrow")
    for rank in range(2):
        own = tmp_path / f"run/rank-{rank:04}"
        run("simulate", "mlp", "--steps", 2, "--batch", 4, "--record-every", 1, "--out", own)
        manifest = json.loads((own / "run.json").read_text())
        manifest.update(rank=rank, world_size=2)
        (own / "run.json").write_text(json.dumps(manifest))
    halfscope.count(tmp_path / "run").to_parquet(tmp_path / "rows")
    page = pathlib.Path(ROOT / "docs/parquet.md").read_text()
    assert "AND part_index = 0" in page
    query = re.findall(r"```sql\n(.*?)```", page, re.DOTALL)[0]
    query = query.replace("'rows/", f"'{tmp_path}/rows/")
    one = query.replace("'weight_grad'", "'weight_grad' AND part_index = 0")
    both, single = ({name: counts for name, *counts in duckdb.sql(text).fetchall()}
                    for text in (query, one))
    assert both == {name: [2 * n for n in counts] for name, counts in single.items()}
    told = {t.name: t for t in halfscope.analyze(tmp_path / "run", loss_scale=1024).tensors}
    for name, (flushed, nonzero) in single.items():
        t = told[name]
        assert nonzero == t.total - t.zero - t.nan - t.inf
        assert t.flushed_to_zero - flushed in range(3)  # ties
