# SPDX-License-Identifier: Apache-2.0
"""The house as tools/rooms.txt has it, and that tools/check_rooms.py sees what is not."""

import re
import subprocess
import sys

import pytest

from program import ROOT


def check(root):
    done = subprocess.run([sys.executable, ROOT / "tools/check_rooms.py", root],
                          capture_output=True, text=True)
    assert done.returncode == (1 if done.stdout else 0), done.stderr
    return done.stdout.splitlines()


@pytest.fixture
def house(tmp_path):
    """A copy of what the files include, and nothing else."""
    for layer in ("analyzers", "reports", "sim", "cli"):
        for path in (ROOT / layer).rglob("*"):
            if path.suffix in (".cpp", ".hpp", ".cu"):
                copy = tmp_path / path.relative_to(ROOT)
                copy.parent.mkdir(parents=True, exist_ok=True)
                lines = re.findall(r'^#include ".*\n', path.read_text(), re.MULTILINE)
                copy.write_text("".join(lines))
    return tmp_path


def include(house, file, included):
    with (house / file).open("a") as stream:
        stream.write(f'#include "{included}"\n')


def test_no_arrow_points_up():
    assert check(ROOT) == []


@pytest.mark.parametrize("file, included, fault", [
    ("analyzers/underflow/share.cpp", "analyzers/recommend/recommend.hpp",
     "the arrow points up, from analyzers/underflow to analyzers/recommend"),
    ("analyzers/readers/wandb/wandb.cpp", "analyzers/readers/console/console_lines.hpp",
     "the arrow points up, from analyzers/readers/wandb to analyzers/readers/console"),
    ("analyzers/frames/source.cpp", "reports/answer/text.hpp", "analyzers knows nothing of reports"),
    ("sim/backend/random.hpp", "analyzers/underflow/share.hpp", "sim knows nothing of analyzers"),
    ("reports/answer/text.cpp", "reports/page/island.hpp",
     "the arrow points up, from reports/answer to reports/page"),
])
def test_an_arrow_upward_is_told(house, file, included, fault):
    include(house, file, included)
    assert check(house) == [f"rooms: {file} includes {included}: {fault}"]


def test_a_cycle_of_files_is_told(house):
    include(house, "analyzers/underflow/share.hpp", "analyzers/underflow/underflow.hpp")
    include(house, "analyzers/underflow/underflow.hpp", "analyzers/underflow/share.hpp")
    assert [line.split(" is in a cycle")[0] for line in check(house)] == [
        "rooms: analyzers/underflow/share.hpp", "rooms: analyzers/underflow/underflow.hpp"]


def test_a_room_that_is_not_in_the_table_is_told(house):
    (house / "analyzers/attic").mkdir()
    (house / "analyzers/attic/old.hpp").write_text("")
    assert check(house) == ["rooms: analyzers/attic/old.hpp: analyzers/attic is not in tools/rooms.txt"]


@pytest.mark.parametrize("call", ["analyzers::underflow::tensor_peaks(analysis)",
                                  "replay::alike(study)"])
def test_a_report_that_analyses_is_told(house, call):
    (house / "reports/answer/text.cpp").write_text(f"const auto found = {call};  // replay::traps(x)\n"
                                                   'const auto quoted = "replay::traps(x)";\n')
    name = call[:call.index("(") + 1].removeprefix("analyzers::")
    [fault] = check(house)
    assert fault.startswith("rooms: reports/answer/text.cpp calls ") and name in fault
