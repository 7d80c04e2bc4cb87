# SPDX-License-Identifier: Apache-2.0
"""halfscope run with Lightning: the log of RecorderCallback, in all bits; processes that Lightning starts."""

import pytest

import frameworks

frameworks.need("lightning")

from recorded_scripts import SCRIPTS, by_hand, recorded, require_same_logs  # noqa: E402


@pytest.mark.parametrize("devices", [1, 2])
def test_lightning(tmp_path, devices):
    _, answer = recorded(SCRIPTS / "lightning_fit.py", tmp_path, devices)
    by_hand("lightning_fit.py", tmp_path, [
        ("logger=False,", "logger=False, callbacks=[__import__('halfscope.lightning').lightning"
                          ".RecorderCallback('log', every=5, sample_every=10)],")], devices)
    require_same_logs(tmp_path, {"": "log"} if devices == 1 else
                      {f"rank-000{rank}": f"log/rank-000{rank}" for rank in (0, 1)})
    assert answer.count("halfscope run: recorded in run;") == 1
