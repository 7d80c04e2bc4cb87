# SPDX-License-Identifier: Apache-2.0
"""Dask, Slurm's job arrays, the examples for Ray and Spark: what they count is what one process
counts, also where a worker is killed."""

import importlib.util
import json
import os
import re
import signal
import subprocess
import sys

import pytest

import halfscope
from frameworks import need
from counted_logs import of_counts
from program import PROGRAM, ROOT, run

RANKS, SHARDS = 6, 4
EXAMPLES = ROOT / "docs/examples"
EACH_EXAMPLE = pytest.mark.parametrize("name, package", [
    ("count_with_ray", "ray"), ("count_with_spark", "pyspark")])
# What stands in for Slurm: the jobs of an array run one after the other, the last one first.
SBATCH = """#!/bin/sh
for last; do :; done
case "$*" in
*--array=1-64*)
  for n in $(seq 64 -1 1); do SLURM_ARRAY_TASK_ID=$n sh -ec "$last" >&2; done
  echo 7 ;;
*--dependency=afterok:7*) sh -ec "$last" ;;
*) exit 1 ;;
esac
"""


def example(name):
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    """A run of ranks that differ."""
    folder = tmp_path_factory.mktemp("ranks") / "run"
    for rank in range(RANKS):
        own = folder / f"rank-{rank:04}"
        run("simulate", "mlp", "--steps", 4, "--batch", 4, "--seed", rank, "--out", own)
        manifest = json.loads((own / "run.json").read_text())
        manifest.update(rank=rank, world_size=RANKS, sharded=["weight_grad"])
        (own / "run.json").write_text(json.dumps(manifest))
    return folder


def answers(log):
    return [of_counts(run(command, log, "--json", "-")[0]) for command in ("analyze", "recommend")]


@pytest.fixture(scope="module")
def expected(log):
    """By one process, and by the log itself."""
    return bytes(halfscope.count(log)), answers(log)


def check(out, expected):
    assert (out.read_bytes(), answers(out)) == expected


def dies_once(mark):
    """What ends the process that counts shard 2, the first time."""
    def die(shard):
        if shard == 2 and not os.path.exists(mark):
            open(mark, "x").close()
            os.kill(os.getpid(), signal.SIGKILL)
    return die


def test_a_killed_worker_of_dask_changes_nothing(log, expected, tmp_path, monkeypatch):
    distributed = pytest.importorskip("distributed")
    from halfscope import distributed as by_dask

    die, count = dies_once(os.fspath(tmp_path / "died")), by_dask._count_shard

    def dying(logs, index, *others):
        die(index)
        return count(logs, index, *others)

    monkeypatch.setattr(by_dask, "_count_shard", dying)
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1,
                                  dashboard_address=None) as cluster:
        with distributed.Client(cluster) as client:
            by_dask.count(log, client=client, shards=SHARDS).save(tmp_path / "dask.hst")
    assert (tmp_path / "died").exists()
    check(tmp_path / "dask.hst", expected)


def test_the_lines_for_slurm_count_as_one_process(log, expected, tmp_path):
    text = (ROOT / "docs/record.md").read_text()
    (lines,) = re.findall(r"```\n(mkdir -p parts\n.*?)```", text, re.DOTALL)
    tools = tmp_path / "bin"
    tools.mkdir()
    (tools / "sbatch").write_text(SBATCH)
    (tools / "sbatch").chmod(0o755)
    (tools / "halfscope").symlink_to(PROGRAM)
    done = subprocess.run(["sh", "-euc", lines.replace("runs/gpt", str(log))], cwd=tmp_path,
                          env={**os.environ, "PATH": f"{tools}:{os.environ['PATH']}"},
                          capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    check(tmp_path / "gpt.hst", expected)


@EACH_EXAMPLE
def test_an_example_names_the_package_that_is_missing(name, package):
    lines = f"import runpy, sys; sys.modules[{package!r}] = None; runpy.run_path(sys.argv[1])"
    done = subprocess.run([sys.executable, "-c", lines, EXAMPLES / f"{name}.py"],
                          capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and len(done.stderr.splitlines()) == 1
    assert f"install it with: pip install {package}" in done.stderr


@EACH_EXAMPLE
def test_an_example_runs_as_a_program(name, package, log, expected, tmp_path):
    need(package)
    told, counted = ([sys.executable, EXAMPLES / f"{name}.py", *arguments] for arguments in (
        [log], [log, tmp_path / "out.hst", "3"]))
    done = subprocess.run(told, capture_output=True, text=True, timeout=120)
    assert done.returncode == 1 and "LOG OUT.hst [SHARDS]" in done.stderr
    done = subprocess.run(counted, capture_output=True, text=True, timeout=300,
                          env={**os.environ, "PYSPARK_PYTHON": sys.executable})
    assert done.returncode == 0, done.stderr
    assert "loss scale" in done.stdout
    check(tmp_path / "out.hst", expected)


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
