# SPDX-License-Identifier: Apache-2.0
"""The shipped training script, run for a few steps: real images, a real network, a real log."""

import pathlib
import subprocess
import sys

import pytest

import halfscope


@pytest.fixture(scope="module")
def fresh(tmp_path_factory):
    folder = tmp_path_factory.mktemp("digits") / "log"
    script = pathlib.Path(__file__).resolve().parents[2] / "data" / "digits-cnn" / "train.py"
    subprocess.run([sys.executable, script, folder, "--steps", "12"], check=True)
    return folder


def test_it_learns_and_is_recorded(fresh, read_log):
    log = read_log(fresh)
    assert sorted(log.scalars) == list(range(12))
    assert sorted({step for _, step in log.tables}) == [0, 1, 2, 5, 10]
    losses = [log.scalars[step]["loss"] for step in range(12)]
    assert min(losses[-3:]) < losses[0]
    assert 1024 <= halfscope.recommend(fresh)["static_scale"] <= 2**24


def test_the_shipped_log_is_of_this_script(fresh, root, read_log):
    shipped_folder = root / "data" / "digits-cnn" / "log"
    shipped = read_log(shipped_folder)
    assert sorted(shipped.scalars) == list(range(901))
    fresh_names = set(read_log(fresh).names(0))
    for step in (0, 1, 2, 5, 10, 30, 100, 300, 600, 900):
        assert set(shipped.names(step)) == fresh_names
    assert sorted(shipped.sample_files) == [0, 100, 900]
    # The weights it began with depend on the seed alone, not on how sums are ordered.
    for name in fresh_names:
        if name.startswith("weight/"):
            mine, theirs = (log.tables[name, 0]["table"] for log in (read_log(fresh), shipped))
            assert mine.total == theirs.total and mine.max_abs == pytest.approx(theirs.max_abs)
    assert sum(f.stat().st_size for f in shipped_folder.rglob("*") if f.is_file()) <= 6_000_000


def test_tables_of_the_shipped_log_are_those_of_its_samples(root, read_log):
    log = read_log(root / "data" / "digits-cnn" / "log")
    for step in log.sample_files:
        sample, _ = log.sample(step)
        for name in log.names(step):
            assert log.tables[name, step]["table"] == halfscope.binade_table(sample[name]), name
