# SPDX-License-Identifier: Apache-2.0
"""halfscope run with FSDP2: the log of a Recorder added by hand, in all bits."""

import concurrent.futures

import pytest

torch = pytest.importorskip("torch")

from recorded_scripts import SCRIPTS, by_hand, recorded, require_same_logs  # noqa: E402

if tuple(map(int, torch.__version__.split(".")[:2])) < (2, 6):
    pytest.skip("this PyTorch has no FSDP2 (fully_shard), which came with 2.6", allow_module_level=True)


def on_two_ranks(function, *arguments):
    with concurrent.futures.ThreadPoolExecutor() as pool:
        ranks = [pool.submit(function, *arguments, RANK=str(rank), WORLD_SIZE="2") for rank in (0, 1)]
    return [rank.result() for rank in ranks]


def test_fully_shard(tmp_path):
    (_, answer), nothing = on_two_ranks(recorded, SCRIPTS / "sharded.py", tmp_path,
                                        f"file://{tmp_path}/meet")
    assert "recorded in run" in answer and "halfscope" not in nothing[1]
    on_two_ranks(by_hand, "sharded.py", tmp_path, [
        ("generator =", "recorder = RECORDER(model=model, optimizer=optimizer, out='log').start()\n"
                        "generator ="),
        ("loss.backward()", "recorder.loss(loss).backward()")], f"file://{tmp_path}/meet-by-hand")
    require_same_logs(tmp_path, {f"rank-000{rank}": f"log/rank-000{rank}" for rank in (0, 1)})
