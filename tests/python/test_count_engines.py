# SPDX-License-Identifier: Apache-2.0
"""The examples for Ray and Spark: what they count is what one process counts, also where a worker
fails."""

import importlib.util
import os
import shutil

import pytest

import halfscope
from frameworks import need
from log_inputs import ROOT, run

RANKS, SHARDS = 6, 4


def example(name):
    path = ROOT / "docs/examples" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ranks") / "run"
    run("simulate", "mlp", "--steps", 4, "--batch", 4, "--out", folder / "rank-0000")
    for rank in range(1, RANKS):
        shutil.copytree(folder / "rank-0000", folder / f"rank-{rank:04}")
    for rank in range(RANKS):
        manifest = folder / f"rank-{rank:04}" / "run.json"
        text = manifest.read_text().replace('"rank":0', f'"rank":{rank}')
        manifest.write_text(text.replace('"world_size":1', f'"world_size":{RANKS}'))
    return folder


@pytest.fixture(scope="module")
def expected(log, tmp_path_factory):
    record = tmp_path_factory.mktemp("expected") / "all.hst"
    halfscope.count(log).save(record)
    return record.read_bytes(), run("recommend", record, "--json", "-")[0]


def check(out, expected):
    assert (out.read_bytes(), run("recommend", out, "--json", "-")[0]) == expected


def dies_once(mark):
    """What ends the process that counts shard 2, the first time."""
    def die(shard):
        if shard == 2 and not os.path.exists(mark):
            open(mark, "x").close()
            os._exit(1)
    return die


@pytest.fixture(scope="module")
def ray():
    ray = need("ray")
    ray.init(num_cpus=2, include_dashboard=False, configure_logging=False,
             runtime_env={"env_vars": {"PYTHONPATH": os.environ.get("PYTHONPATH", "")}})
    yield ray
    ray.shutdown()


def test_ray_counts_as_one_process(ray, log, expected, tmp_path, capsys):
    example("count_with_ray").main(os.fspath(log), tmp_path / "ray.hst", SHARDS)
    check(tmp_path / "ray.hst", expected)
    assert "loss scale" in capsys.readouterr().out


def test_a_killed_worker_of_ray_changes_nothing(ray, log, expected, tmp_path):
    module = example("count_with_ray")
    die = dies_once(os.fspath(tmp_path / "died"))

    @ray.remote(max_retries=3)
    def count(log, shard):
        die(shard[0])
        return halfscope.count(log, shard=shard)

    module.count = count
    module.main(os.fspath(log), tmp_path / "ray.hst", SHARDS)
    assert (tmp_path / "died").exists()
    check(tmp_path / "ray.hst", expected)


@pytest.fixture(scope="module")
def spark():
    need("pyspark")
    from pyspark import sql

    builder = sql.SparkSession.builder.master("local[2,3]")  # 2 threads, a task may fail twice
    with builder.config("spark.ui.enabled", "false").getOrCreate() as session:
        yield session


def test_spark_counts_as_one_process(spark, log, expected, tmp_path, capsys):
    example("count_with_spark").main(spark, os.fspath(log), tmp_path / "spark.hst", SHARDS)
    check(tmp_path / "spark.hst", expected)
    assert "loss scale" in capsys.readouterr().out


def test_a_killed_worker_of_spark_changes_nothing(spark, log, expected, tmp_path, monkeypatch):
    die, count = dies_once(os.fspath(tmp_path / "died")), halfscope.count

    class Dying:
        """halfscope, as the tasks see it."""
        @staticmethod
        def count(log, shard):
            die(shard[0])
            return count(log, shard=shard)
        recommend = staticmethod(halfscope.recommend)

    module = example("count_with_spark")
    module.halfscope = Dying
    module.main(spark, os.fspath(log), tmp_path / "spark.hst", SHARDS)
    assert (tmp_path / "died").exists()
    check(tmp_path / "spark.hst", expected)
