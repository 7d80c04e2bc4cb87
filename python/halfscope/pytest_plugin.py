# SPDX-License-Identifier: Apache-2.0
"""The plugin of pytest: a mark with conditions on the training inside a test, and a fixture that
records it. docs/integrations.md.

pytest finds the plugin by the entry point of the installed package. It imports PyTorch for tests
with the mark or the fixture only.
"""

import re
import subprocess

import pytest

from halfscope import _halfscope
from halfscope.__main__ import PROGRAM
from halfscope._arguments import check_text

_OPPOSITE = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "=="}
_CALLED = "@pytest.mark.halfscope"
_VIOLATED = 4  # the program's exit code
_MOST_LINES = 10  # evidence shown for a condition


def pytest_configure(config):
    config.addinivalue_line(
        "markers", "halfscope(*conditions, at_loss_scale=1, every=1, ...): the test "
        "trains with PyTorch, and the conditions ('updates_lost < 10%') must hold for every tensor of it")


def pytest_itemcollected(item):
    wanted = isinstance(item, pytest.Function) and item.get_closest_marker("halfscope")
    if wanted and "halfscope_run" not in item.fixturenames:
        item.fixturenames = [*item.fixturenames, "halfscope_run"]  # the old list may be of other tests too


class _Marks:
    """The marks of a test. Their conditions add; a setting is that of the closest mark."""

    def __init__(self, item):
        marks = list(item.iter_markers("halfscope"))
        self.conditions = [condition for mark in marks for condition in mark.args]
        self.settings = {"every": 1}
        for mark in reversed(marks):
            self.settings.update(mark.kwargs)
        self.scale = self.settings.pop("at_loss_scale", 1)
        self.commands = {}
        for condition in self.conditions:
            check_text("a condition", condition, "a text such as 'updates_lost < 10%'")
            self.commands[condition], needs_samples = _halfscope.command_of(condition)
            if needs_samples:
                self.settings.setdefault("sample_every", 1)

    def faults(self, logs):
        """Returns a text for each condition that does not hold for the logs, with the evidence."""
        return [text for condition in self.conditions if (text := self._fault(condition, logs))]

    def _fault(self, condition, logs):
        command = self.commands[condition]
        opposite = re.sub("[<>=!]=|[<>]", lambda found: _OPPOSITE[found[0]], condition, count=1)
        scale = ["--loss-scale", str(self.scale)] if command == "analyze" else []
        done = subprocess.run([PROGRAM, command, *logs, *scale, "--fail-if", opposite],
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, errors="replace")
        if done.returncode == 0:
            return ""
        lines = ["  " + line.removeprefix("halfscope: ") for line in done.stderr.splitlines()]
        more = [f"  and {len(lines) - _MOST_LINES} more"] if len(lines) > _MOST_LINES else []
        what = "does not hold" if done.returncode == _VIOLATED else "cannot be tested"
        return "\n".join([f"{condition!r} {what}:", *lines[:_MOST_LINES], *more])


@pytest.fixture
def halfscope_run(request, tmp_path_factory):
    """The halfscope.torch.record that records the PyTorch optimizers of this test. `folders` has the
    paths of their logs, answer() the text of `halfscope recommend`."""
    from halfscope._parts import part

    record = part("halfscope.torch", "halfscope_run", "torch").record
    try:
        marks = _Marks(request.node)
        recording = record(tmp_path_factory.mktemp("halfscope") / "run", **marks.settings)
    except (TypeError, ValueError) as error:
        raise pytest.fail.Exception(f"{_CALLED}: {error}", pytrace=False) from None
    with recording:
        yield recording


@pytest.hookimpl(trylast=True)  # after the test itself, if that passes
def pytest_runtest_call(item):
    if "halfscope_run" in getattr(item, "funcargs", ()) and item.get_closest_marker("halfscope"):
        recording, marks = item.funcargs["halfscope_run"], _Marks(item)
        recording.stop()
        if not recording.folders:
            pytest.fail(f"{_CALLED}: {recording.answer()}; train some steps in the test, or remove the mark",
                        pytrace=False)
        if failed := marks.faults(recording.folders):
            logs = " ".join(recording.folders)
            pytest.fail("\n".join([*failed, *recording.notes, f"To see more: halfscope report {logs}"]),
                        pytrace=False)
