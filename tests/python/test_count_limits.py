# SPDX-License-Identifier: Apache-2.0
"""Counts that would add up to 2^64 are refused, wherever they are added; none wraps to a small one."""
import json

import numpy as np
import pytest

from halfscope import _halfscope
from program import json_of, run

FLUSHED = 2.0**-40


def counted(value, times):
    """The histogram of `times` equal values, a power of two."""
    words = _halfscope.count_binades(np.float32([value])).encode()
    words[-10] = times  # the first segment of the one row, which ends with the negative ones
    return _halfscope.BinadeTable.decode(words)


def write_rank(folder, tables, rank=0, ranks=1, sharded=()):
    """A run log: tables by (step, tensor)."""
    writer = _halfscope.RunLogWriter(folder, json.dumps(
        {"scaled": False, "rank": rank, "world_size": ranks, "sharded": list(sharded), "about": {}}))
    for step, name, table in tables:
        writer.write_tensors(step, [(f"weight_grad/{name}", _halfscope.Gathered.of(
            table, "F32", (4,), 0.0, 0.0), False, 1.0)])
    return folder


def steps(folder, power):
    return write_rank(folder, [(step, "w", counted(FLUSHED, 2**power)) for step in range(4)])


def tensors(folder, power):
    return write_rank(folder, [(0, f"w{i}", counted(FLUSHED, 2**power)) for i in range(4)])


def ranks(folder, power):
    for rank in range(4):
        write_rank(folder / f"rank-{rank:04}", [(0, "w", counted(FLUSHED, 2**power))], rank, 4,
                   ["weight_grad"])
    return folder


@pytest.mark.parametrize("logs", [steps, tensors, ranks])
@pytest.mark.parametrize("through", ["log", "record"])
def test_counts_that_wrap_are_refused(tmp_path, logs, through):
    log = logs(tmp_path / "run", 62)
    if through == "record":
        run("count", log, "--out", tmp_path / "a.hst")
        log = tmp_path / "a.hst"
    for command in (("analyze", "--fail-if", "flushed_to_zero > 0"), ("recommend",)):
        told = run(command[0], log, *command[1:], expect=1)[1]
        assert told.count("\n") == 1 and "tensor 'weight_grad/w" in told, told
        assert "expected at most 2^62 in all" in told and "--tensor or --step" in told


def test_logs_are_refused_together(tmp_path):
    logs = [steps(tmp_path / str(i), 59) for i in range(4)]
    run("analyze", *logs[:2])
    assert "expected at most 2^62 in all" in run("analyze", *logs, expect=1)[1]


def test_large_counts_are_exact(tmp_path):
    [tensor] = json_of("analyze", steps(tmp_path / "run", 60))["tensors"]
    assert tensor["total"] == tensor["flushed_to_zero"] == 2**62


def test_tables_add_in_python_up_to_the_limit():
    table = counted(FLUSHED, 2**62)
    with pytest.raises(OverflowError, match="more than 2.63 values together"):
        table.merge(table)
    assert table.total == 2**62
