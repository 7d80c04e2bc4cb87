# SPDX-License-Identifier: Apache-2.0
"""Records: `halfscope count` and `halfscope merge`. A record answers as its logs do, however they
were divided."""

import json
import os
import pickle
import random
import re
import shutil
import subprocess

import numpy as np
import pytest

import halfscope
from halfscope import _halfscope
from counted_logs import RANKS, WHOLE_ONLY, answers, count, of_counts, ranks, steps
from log_inputs import CORPUS
from program import DIGITS, PROGRAM, ROOT, json_of, run

__all__ = ["ranks", "steps"]  # fixtures
OTHER_LOGS = [CORPUS / "megatron.txt", CORPUS / "deepspeed-zero.txt", CORPUS / "folder-two-runs",
              CORPUS / "two-engines.txt", ROOT / "tests/data/tensorboard/tensorflow-2.tfevents",
              ROOT / "tests/data/wandb/history.jsonl"]


def fields(result):
    return {name: value for name, value in dict(result).items() if name not in WHOLE_ONLY}


@pytest.mark.parametrize("log", [*OTHER_LOGS, DIGITS], ids=lambda log: log.name)
def test_a_record_answers_as_its_log(log, tmp_path):
    count(log, tmp_path / "log.hst")
    assert answers(tmp_path / "log.hst") == answers(log)


def test_a_record_of_ranks_answers_as_they_do(ranks, tmp_path):
    count(ranks, tmp_path / "all.hst")
    assert answers(tmp_path / "all.hst") == answers(ranks)
    for option in (["--step", "2:4"], ["--tensor", "weight*"], ["--loss-scale", "1024"]):
        of_record, of_log = (of_counts(run("analyze", log, *option, "--json", "-")[0])
                             for log in (tmp_path / "all.hst", ranks))
        assert of_record == of_log


def test_a_record_of_ranks_without_their_number_answers_as_they_do(ranks, tmp_path):
    """Manifests that do not say how many ranks there are."""
    shutil.copytree(ranks, tmp_path / "run")
    for manifest in (tmp_path / "run").glob("*/run.json"):
        told = json.loads(manifest.read_text())
        del told["world_size"]
        manifest.write_text(json.dumps(told))
    count(tmp_path / "run", tmp_path / "all.hst")
    assert answers(tmp_path / "all.hst") == answers(tmp_path / "run")


def test_a_record_of_steps_answers_as_they_do(steps, tmp_path):
    count(steps, tmp_path / "all.hst")
    assert answers(tmp_path / "all.hst") == answers(steps)


def test_any_division_merges_to_the_same_bytes(ranks, steps, tmp_path):
    shuffled = random.Random(7)
    for log in (ranks, steps):
        count(log, tmp_path / "whole.hst")
        run("merge", tmp_path / "whole.hst", "--out", tmp_path / "whole.hst")
        for jobs in (1, 2, 3, 7):
            parts = [tmp_path / f"part-{job}.hst" for job in range(jobs)]
            for job in shuffled.sample(range(jobs), jobs):
                count(log, parts[job], "--shard", f"{job + 1}/{jobs}")
            shuffled.shuffle(parts)
            run("merge", *parts, parts[0], "--out", tmp_path / "merged.hst")
            assert (tmp_path / "merged.hst").read_bytes() == (tmp_path / "whole.hst").read_bytes()
            for part in parts:
                part.unlink()
        (tmp_path / "whole.hst").unlink()


def test_a_hundred_random_partitions_give_the_same(ranks, steps):
    """Any shards, joined in any order and any groups, some of them twice."""
    by_chance = random.Random(11)
    for log in (ranks, steps):
        whole = halfscope.count(log)
        shards = {of: [halfscope.count(log, shard=(i, of)) for i in range(1, of + 1)]
                  for of in (1, 2, 3, 4, 5, 9)}
        for _ in range(50):
            parts = list(by_chance.choice(list(shards.values())))
            parts += by_chance.choices(parts, k=by_chance.randrange(3))
            while len(parts) > 1:
                by_chance.shuffle(parts)
                group = by_chance.randint(2, len(parts))
                parts = [halfscope.Counts.merged(parts[:group]), *parts[group:]]
            assert parts[0] == whole


def test_a_rank_counted_alone_is_a_part_of_its_run(ranks, tmp_path):
    parts = []
    for rank in sorted(ranks.iterdir()):
        parts.append(tmp_path / f"{rank.name}.hst")
        count(rank, parts[-1])
    run("merge", *parts, "--out", tmp_path / "all.hst")
    assert answers(tmp_path / "all.hst") == answers(ranks)


def test_several_logs_stay_apart(ranks, steps, tmp_path):
    for log in (ranks, steps):
        count(log, tmp_path / f"{log.name}.hst")
    told = run("merge", tmp_path / "run.hst", tmp_path / "dumps.hst", "--out", tmp_path / "all.hst")
    assert told[0].splitlines()[:2] == [f"{ranks}: 4 parts, complete.",
                                        f"{steps}: 5 parts, complete."]
    found = json_of("analyze", tmp_path / "all.hst")
    assert found["logs"] == sorted([str(ranks), str(steps)])
    assert answers(f"{tmp_path / 'all.hst'}/{steps}") == answers(steps)
    assert "has no log 'other'" in run("analyze", f"{tmp_path / 'all.hst'}/other", expect=1)[1]


def test_missing_ranks_are_named(ranks, tmp_path):
    count(ranks, tmp_path / "half.hst", "--shard", "1/2")
    assert "has 2 of the 4 ranks of its manifest" in run("analyze", tmp_path / "half.hst")[1]
    assert "2 parts, 2 missing" in run("merge", tmp_path / "half.hst", "--out",
                                       tmp_path / "half.hst")[0]


def test_merge_can_require_all_parts(ranks, tmp_path):
    out = tmp_path / "all.hst"
    count(ranks, tmp_path / "1.hst", "--shard", "1/2")
    told = run("merge", tmp_path / "1.hst", "--require-complete", "--out", out, expect=1)[1]
    assert f"{ranks}: 2 of 4 parts are missing; count them and merge again" in told
    assert not out.exists()
    count(ranks, tmp_path / "2.hst", "--shard", "2/2")
    parts = tmp_path / "1.hst", tmp_path / "2.hst"
    assert "4 parts, complete" in run("merge", *parts, "--require-complete", "--out", out)[0]


def test_more_ranks_than_the_manifest_says(ranks, tmp_path):
    """A folder that was put together by hand: each part says that it is the only one."""
    folder = shutil.copytree(ranks, tmp_path / "runs")
    for rank in folder.iterdir():
        manifest = json.loads((rank / "run.json").read_text())
        (rank / "run.json").write_text(json.dumps({**manifest, "world_size": 1}))
    run("count", folder, "--shard", "1/2", "--out", tmp_path / "half.hst")
    told = run("merge", tmp_path / "half.hst", "--out", tmp_path / "all.hst")[0]
    assert "2 parts, 2 missing" in told


def test_a_log_given_twice_is_counted_once(ranks, tmp_path):
    count(ranks, tmp_path / "once.hst")
    for name, logs in (("twice", (ranks, ranks)), ("slash", (f"{ranks}/",)), ("dot", (f"{ranks}/.",)),
                       ("rank", (ranks, f"{ranks}/rank-0001/"))):
        run("count", *logs, "--out", tmp_path / f"{name}.hst")
        assert (tmp_path / f"{name}.hst").read_bytes() == (tmp_path / "once.hst").read_bytes()
    told = subprocess.run([PROGRAM, "count", "rank-0001", "--out", tmp_path / "one.hst"], cwd=ranks)
    assert told.returncode == 0
    assert ".: 1 part, 3 missing." in run("merge", tmp_path / "one.hst", "--out", tmp_path / "one.hst")[0]


def test_records_are_compared_without_what_lies_at_their_paths(tmp_path):
    for name, seed in (("a", 1), ("b", 2)):
        run("simulate", "mlp", "--steps", 2, "--batch", 4, "--record-every", 1, "--seed", seed,
            "--out", tmp_path / name)
        count(tmp_path / name, tmp_path / f"{name}.hst")
    records = [tmp_path / "a.hst", tmp_path / "b.hst"]
    there = run("compare", *records, "--json", "-")[0]
    shutil.rmtree(tmp_path / "b")
    assert run("compare", *records, "--json", "-")[0] == there
    assert '"elements"' not in there


def report_of(tmp_path, log):
    count(log, tmp_path / "other.hst")
    run("report", tmp_path / "other.hst", "--out", tmp_path / "other.html")
    return (tmp_path / "other.html").read_text()


def test_a_page_of_a_record_has_all_but_what_needs_tensors(tmp_path):
    count(DIGITS, tmp_path / "digits.hst")
    run("report", tmp_path / "digits.hst", "--out", tmp_path / "page.html")
    run("report", DIGITS, "--out", tmp_path / "log.html")
    page, of_log = ((tmp_path / name).read_text() for name in ("page.html", "log.html"))
    assert all('id="updates"' in text for text in (page, of_log))
    assert 'id="updates"' not in report_of(tmp_path, OTHER_LOGS[0])
    assert "this needs the tensors" in run("analyze", tmp_path / "digits.hst", "--what-if", expect=1)[1]


def test_what_needs_the_tensors_is_refused(ranks, tmp_path):
    count(ranks, tmp_path / "all.hst")
    told = run("analyze", tmp_path / "all.hst", "--what-if", expect=1)[1]
    assert f"this needs the tensors themselves; ask the log that was counted, {ranks}" in told


def test_a_record_is_small(tmp_path):
    count(DIGITS, tmp_path / "digits.hst")
    assert os.path.getsize(tmp_path / "digits.hst") < 0.2 * sum(
        file.stat().st_size for file in DIGITS.rglob("*") if file.is_file())


def test_counts_add_in_python(ranks, steps, tmp_path):
    parts = [halfscope.count(ranks, shard=(i, 3)) for i in (1, 2, 3)]
    whole = halfscope.count(ranks)
    assert sum(reversed(parts)) == whole == pickle.loads(pickle.dumps(parts[1] + parts[0])) + parts[2]
    assert whole.logs == {str(ranks): (4, 4)} and parts[0].logs == {str(ranks): (2, 4)}
    assert repr(parts[0]).startswith(f"<Counts of {ranks} (2 of 4 parts), ")
    assert fields(halfscope.recommend(whole)) == fields(halfscope.recommend(ranks))
    (whole + halfscope.count(steps, shard="1/1")).save(tmp_path / "all.hst")
    assert set(halfscope.Counts.load(tmp_path / "all.hst").logs) == {str(ranks), str(steps)}
    with pytest.raises(halfscope.BadInput, match="is not a record"):
        halfscope.Counts(b"nothing")
    with pytest.raises(halfscope.BadInput, match="counted with other options"):
        halfscope.count(steps) + halfscope.count(steps, recorded_scale=8)
    for shard in ("3/2", (0, 1), 4, "a/b", (1.0, 2)):
        with pytest.raises(ValueError, match="expected \\(i, n\\)"):
            halfscope.count(steps, shard=shard)
    with pytest.raises(TypeError):
        whole + 1


def test_parquet_has_every_count(ranks, tmp_path):
    """The queries of docs/parquet.md run, and their sums are those of analyze."""
    duckdb = pytest.importorskip("duckdb")
    pytest.importorskip("pyarrow")
    halfscope.count(ranks).to_parquet(tmp_path / "rows")
    halfscope.count(ranks).to_parquet(tmp_path / "rows")  # replaces
    queries = re.findall(r"```sql\n(.*?)```", (ROOT / "docs/parquet.md").read_text(), re.DOTALL)
    assert len(queries) == 5
    found = [duckdb.sql(query.replace("'rows/", f"'{tmp_path}/rows/")).fetchall() for query in queries]
    told = {t.name: t for t in halfscope.analyze(ranks, loss_scale=1024).tensors}
    for tensor, flushed, nonzero in found[0]:
        t = told[tensor]
        assert nonzero == t.total - t.zero - t.nan - t.inf
        assert t.flushed_to_zero - flushed in range(3)  # ties
    assert [step for step, *_ in found[1]] == [0, 2, 4]
    gradients = [t for t in told.values() if t.role == "weight_grad"]
    assert max(at_most for _, at_most, *_ in found[1]) >= max(t.max_abs for t in gradients)
    unscaled = {}
    for t in told.values():
        for exponent, number in t.binades if t.role in ("weight_grad", "activation_grad") else ():
            unscaled[exponent] = unscaled.get(exponent, 0) + number
    copies = {t.name for t in told.values() if t.role == "activation_grad"}
    assert not copies or found[2]  # of each rank: the sums of weight gradients alone are analyze's
    if not copies:
        assert dict(found[2]) == unscaled
    binades = dict(duckdb.sql(
        f"SELECT exponent, sum(count) FROM '{tmp_path}/rows/binades.parquet' "
        "WHERE role = 'weight_grad' GROUP BY exponent").fetchall())
    summed = {}
    for t in gradients:
        for exponent, number in t.binades:
            summed[exponent] = summed.get(exponent, 0) + number
    assert binades == summed
    assert found[3] == []
    scalars = _halfscope.read_run_log(ranks / "rank-0000")[0]
    assert found[4] == [(step, at["loss_scale"], at["found_inf"]) for step, at in scalars.items()]
    losses = duckdb.sql(f"SELECT part_index, step, value FROM '{tmp_path}/rows/scalars.parquet' "
                        "WHERE scalar = 'loss'").fetchall()
    assert len(losses) == RANKS * len(scalars)
    assert {step: value for part, step, value in losses if part == 0} == {
        step: at["loss"] for step, at in scalars.items()}


def test_dask_gives_the_same(ranks, steps):
    distributed = pytest.importorskip("distributed")
    from halfscope import distributed as by_dask

    whole = halfscope.count([ranks, steps])
    with distributed.LocalCluster(n_workers=1, threads_per_worker=1, processes=False,
                                  dashboard_address=None) as cluster:
        with distributed.Client(cluster) as client:
            for workers, shards in ((1, None), (2, 1), (3, 3), (4, None)):
                cluster.scale(workers)
                client.wait_for_workers(workers)
                assert by_dask.count([ranks, steps], client=client, shards=shards) == whole
            assert fields(by_dask.analyze(ranks, client=client)) == fields(halfscope.analyze(ranks))
            with pytest.raises(halfscope.BadInput, match="no such file"):
                by_dask.count("nothing-here", client=client)


def test_names_need_not_be_utf_8(steps, tmp_path):
    log = os.fsencode(tmp_path) + b"/d\xfcmps"
    shutil.copytree(os.fsencode(steps), log)
    told = subprocess.run([PROGRAM, "count", log, "--out", tmp_path / "all.hst"], capture_output=True)
    assert told.returncode == 0 and b"protobuf" not in told.stderr
    run("recommend", tmp_path / "all.hst")
    counts = halfscope.count(os.fsdecode(log))
    assert counts == halfscope.Counts.load(tmp_path / "all.hst")
    assert list(counts.logs) == [os.fsdecode(log)]
    pytest.importorskip("pyarrow")
    counts.to_parquet(tmp_path / "rows")


def test_steps_of_ranks_are_joined_in_updates(tmp_path):
    from safetensors.numpy import save_file
    for rank in range(2):
        own = tmp_path / "run" / f"rank-{rank:04}"
        (own / "tensors").mkdir(parents=True)
        (own / "run.json").write_text(json.dumps(
            {"schema": 1, "gradients": "unscaled", "rank": rank, "world_size": 2,
             "sharded": ["weight", "update"]}))
        for step in (4, 9):
            save_file({"weight/w": np.ones(3, np.float32), "update/w": np.full(3, 1e-3, np.float32)},
                      own / "tensors" / f"step-{step:06}.safetensors")
    log, record = tmp_path / "run", tmp_path / "log.hst"
    count(log, record)
    for path in (log, record):
        (weight,) = [t for t in json_of("analyze", path)["tensors"]
                     if t["role"] == "weight"]
        assert [(one["step"], one["updates"]) for one in weight["update_detail"]["per_step"]] == [(4, 6), (9, 6)]
    assert answers(record) == answers(log)


def test_a_learning_rate_is_given_to_count(tmp_path):
    rng = np.random.default_rng(1)
    from safetensors.numpy import save_file
    save_file({"weight/w": rng.standard_normal(64).astype(np.float16),
               "weight_grad/w": rng.standard_normal(64).astype(np.float16)}, tmp_path / "step-1.safetensors")
    log, record = tmp_path / "step-1.safetensors", tmp_path / "log.hst"
    count(log, record, "--lr", "0.001")
    updates = [[t["updates"] for t in json_of("analyze", path, *options)["tensors"]
                if t["role"] == "weight"] for path, options in ((log, ("--lr", "0.001")), (record, ()))]
    assert updates[0] == updates[1] != []
    assert "so --lr comes too late" in run("analyze", record, "--lr", "0.1", expect=1)[1]
