# SPDX-License-Identifier: Apache-2.0
"""`halfscope watch` as a command: the screen in a terminal, lines into a pipe, errors, its cost."""
import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys

import numpy
import pytest

import halfscope
from halfscope import _halfscope
from program import DIGITS, ROOT

CONSOLE = ROOT / "tests/data/console/deepspeed-slow-start.txt"
STEPS = "step 1: loss 2\nstep 2: loss 1.5\n"
CODE = "import sys; from halfscope.watch import main; sys.exit(main())"
WITHOUT_RICH = f"import sys; sys.modules['rich.console'] = None; {CODE}"


@contextlib.contextmanager
def watch(*arguments, code=CODE, **how):
    with subprocess.Popen([sys.executable, "-c", code, *map(os.fspath, arguments)], text=True, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, **how) as process:
        try:
            yield process
        finally:
            process.kill()


def ended(*arguments, expect=0, **how):
    with watch(*arguments, **how) as process:
        out, error = process.communicate(timeout=60)
    assert process.returncode == expect, error + out
    return out, error


def test_a_line_for_each_change(tmp_path):
    run = tmp_path / "run"
    run.mkdir()
    with watch(run) as process:
        assert process.stdout.readline() == f"waiting: {run}: holds no event file and no log of text yet\n"
        data = CONSOLE.read_text()
        half = data.index("\n", len(data) // 2) + 1
        (run / "train.log").write_text(data[:half])
        first = process.stdout.readline()
        with open(run / "train.log", "a") as file:
            file.write(data[half:])
        second = process.stdout.readline()
        with open(run / "train.log", "a") as file:
            file.write("nothing new\n")  # no line: the figures are the same
        shutil.rmtree(run)
        rest, error = process.communicate(timeout=60)
    assert re.fullmatch(r"step 11  loss -  scale \d+  skipped 1\d  flushed -  lost -  .*\n", first)
    headline = halfscope.recommend(CONSOLE).answer.headline
    assert second == f"step 60  loss -  scale 32768  skipped 17  flushed -  lost -  {headline}\n"
    assert (rest, process.returncode) == ("", 1)
    assert error == f"halfscope watch: {run}: No such file or directory; start again when there is a log\n"


def test_one_screen(tmp_path):
    out, error = ended(DIGITS, "--once", env={**os.environ, "COLUMNS": "120", "LINES": "40"})
    advice = halfscope.recommend(DIGITS)
    assert advice.answer.headline in " ".join(out.split())
    assert error == "" and "\x1b" not in out
    lines = out.splitlines()
    assert "step 900   loss 4.886e-05   scale 1   skipped 0   flushed 17.6 %   lost 36.4 %" == lines[0]
    bars = [line for line in lines if "█" in line]
    assert len(bars) == 16
    now, advised = (next(line for line in lines if name in line) for name in ("── scale 1 ", "scale 2^15"))
    axis = next(line for line in lines if "2^0" in line)
    assert now.index("│") - axis.index("2^-20") == -25 + 20 - 1  # at the end of the binade below 2^-25
    assert advised.index("│") == now.index("│") - 15
    assert [line.split()[0] for line in lines[-6:]] == [
        "activation_grad/classifier", "activation_grad/conv1", "activation_grad/pool",
        "activation_grad/relu2", "activation_grad/conv2", str(DIGITS)]


def test_names_of_tensors_are_no_markup(tmp_path):
    run = tmp_path / "[red]run"
    write_tensors(run, "weight_grad/x[/y]", "weight_grad/[encoder]", "weight_grad/:100:")
    out, error = ended(run, "--once", env={**os.environ, "COLUMNS": "120", "LINES": "40"})
    assert error == "" and [line.split()[0] for line in out.splitlines()[-4:]] == [
        "weight_grad/x[/y]", "weight_grad/[encoder]", "weight_grad/:100:", str(run)]


@pytest.mark.parametrize("columns", [30, 80, 200])
def test_long_names_are_shortened(tmp_path, columns):
    write_tensors(tmp_path / "run", "weight_grad/" + "x" * 3000, "weight_grad/" + "日本" * 500)
    out, _ = ended(tmp_path / "run", "--once", env={**os.environ, "COLUMNS": str(columns), "LINES": "40"})
    rows = [line for line in out.splitlines() if line.startswith("weight_grad/")]
    assert len(rows) == 2 and all("…" in row and len(row) <= columns for row in rows)
    assert all(("… " in row and " 50.0 % " in row) == (columns > 30) for row in rows)


def write_tensors(run, *names):
    log = _halfscope.RunLogWriter(os.fspath(run), json.dumps(
        {"scaled": False, "rank": 0, "world_size": 1, "sharded": [], "about": {}}))
    table = halfscope.binade_table(numpy.float32([1e-3, 1e-9]))
    log.write_tensors(0, [(name, _halfscope.Gathered.of(table, "F32", [2], 0.5, 1.0), False, 1.0) for name in names])
    log.write_scalars(step=0, loss=1.0, learning_rate=0.1, loss_scale=1.0, found_inf=False, more={},
                      max_abs_weight_grad=1e-3, max_abs_activation_grad=None)


@pytest.mark.parametrize("arguments", [["--once"], []])
def test_an_output_without_block_characters(tmp_path, arguments):
    write_tensors(tmp_path / "größe", "weight_grad/größe")
    with watch(tmp_path / "größe", *arguments, env={
            **os.environ, "PYTHONIOENCODING": "ascii", "COLUMNS": "120", "LINES": "40"}) as process:
        out = process.communicate(timeout=60)[0] if arguments else process.stdout.readline()
        assert out.startswith("step 0 ") and out.isascii()
        assert not arguments or "gr??e" in out and " # " in out and "-- " in out


def test_without_rich(tmp_path):
    out, error = ended(DIGITS, "--once", code=WITHOUT_RICH)
    assert out.startswith("step 900  loss 4.886e-05  scale 1  skipped 0  flushed 17.6 %  lost 36.4 %  PyTorch's")
    assert (out.count("\n"), error) == (1, "")


@pytest.mark.parametrize("arguments, code, said", [
    (["/nowhere"], 1, "/nowhere: no such file or folder; check the path, or start the training first"),
    (["/dev/null"], 1, "/dev/null: no such file or folder"),
    (["s3://bucket/run"], 1, "s3://bucket/run: no such file or folder"),
    ([], 2, "the following arguments are required: RUN"),
    ([DIGITS, "--often"], 2, "unrecognized arguments: --often"),
    ([DIGITS, "--once", "--recorded-scale", "no/such"], 1, "no/such"),
    ([CONSOLE, "--once", "--lines", "{"], 1, "a brace is opened but not closed"),
])
def test_wrong_arguments(arguments, code, said):
    out, error = ended(*arguments, expect=code)
    assert out == "" and said in error.splitlines()[-1]
    assert error.count("\n") == 1 or code == 2


def test_help_has_an_example():
    out, _ = ended("--help")
    assert "halfscope watch runs/mine " in out


def test_a_reader_that_ends(tmp_path):
    run = tmp_path / "train.log"
    run.write_text(STEPS)
    with watch(run) as process:
        assert process.stdout.readline().startswith("step 2 ")
        process.stdout.close()
        run.write_text(f"{STEPS}step 3: loss 1\n")
        assert process.wait(timeout=60) == 0
        assert process.stderr.read() == ""


@pytest.mark.parametrize("ending", [signal.SIGHUP, signal.SIGTERM])
def test_a_signal_leaves_nothing(tmp_path, ending):
    with watch(DIGITS, env={**os.environ, "TMPDIR": str(tmp_path)},
               preexec_fn=lambda: signal.signal(ending, signal.SIG_DFL)) as process:
        process.stdout.readline()
        assert len(os.listdir(tmp_path)) == 1
        process.send_signal(ending)
        assert process.wait(timeout=60) == 128 + ending
        assert process.stderr.read() == ""
    assert os.listdir(tmp_path) == []


def test_nohup_keeps_it_alive(tmp_path):
    run = tmp_path / "train.log"
    run.write_text(STEPS)
    with watch(run, preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN)) as process:
        process.stdout.readline()
        process.send_signal(signal.SIGHUP)
        run.write_text(f"{STEPS}step 3: loss 1\n")
        assert process.stdout.readline().startswith("step 3 ")


class Terminal:
    """The command in a terminal. `screen()` waits for a text and returns all that was written."""

    def __init__(self, run, rows=24, columns=80, code=CODE):
        pexpect = pytest.importorskip("pexpect")
        self.child = pexpect.spawn(sys.executable, ["-c", code, os.fspath(run)], encoding="utf-8", timeout=20,
                                   dimensions=(rows, columns), env={**os.environ, "TERM": "xterm"})

    def screen(self, text):
        self.child.expect_exact(text)
        return self.child.before + self.child.after

    def ended(self):
        rest = self.child.read()
        self.child.wait()
        return rest, self.child.exitstatus


@pytest.mark.parametrize("rows, columns", [(24, 80), (60, 200), (8, 40)])
def test_the_screen_in_a_terminal(rows, columns):
    terminal = Terminal(DIGITS, rows, columns)
    shown = terminal.screen("skipped")
    if rows >= 24:
        shown += terminal.screen("q ends")
        assert "\x1b[32m" in shown  # green, of the terminal's own colours
        text = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", shown)
        assert "activation_grad/conv2" in text and "recommended scale 2^15" in text
        assert len(text.replace("\r", "").splitlines()) <= rows
    terminal.child.send("xq")
    rest, code = terminal.ended()
    assert code == 0 and rest.endswith("\x1b[?25h\x1b[?1049l")  # the cursor, and the screen of before


@pytest.mark.parametrize("how, code", [("interrupt", 0), ("terminate", 143)])
def test_the_terminal_is_as_before(tmp_path, how, code):
    """Its settings too: keys are shown again, and wait for the end of a line."""
    terminal = Terminal(DIGITS, code=f"import sys, termios; from halfscope.watch import main\n"
                        "before = termios.tcgetattr(sys.stdin)\n"
                        "try: code = main()\n"
                        "finally: print('same', before == termios.tcgetattr(sys.stdin))\n"
                        "sys.exit(code)")
    terminal.screen("q ends")
    terminal.child.sendintr() if how == "interrupt" else terminal.child.kill(15)
    rest, exit_code = terminal.ended()
    assert "\x1b[?1049l" in rest and "same True" in rest
    assert exit_code == code


def test_a_terminal_that_is_closed(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    terminal = Terminal(DIGITS)
    terminal.screen("q ends")
    terminal.child.close(force=False)
    assert os.listdir(tmp_path) == []


def test_the_screen_follows(tmp_path):
    run = tmp_path / "train.log"
    run.write_text(STEPS)
    terminal = Terminal(run)
    terminal.screen("q ends")
    with open(run, "a") as file:
        file.write("step 77: loss 1\n")
    terminal.screen("77")
    run.write_text("step 5: loss 3\nstep 6: loss 3\n")
    terminal.screen("the log was replaced")
    terminal.child.send("q")
    assert terminal.ended()[1] == 0


def test_a_terminal_without_rich(tmp_path):
    run = tmp_path / "train.log"
    run.write_text(STEPS)
    terminal = Terminal(run, code=WITHOUT_RICH)
    shown = terminal.screen("step 2 ")
    assert shown.startswith("halfscope watch: the screen of halfscope watch needs 'halfscope[watch]': pip install "
                            "'halfscope[watch]'; it writes one line for each change")
    terminal.child.sendintr()
    assert terminal.ended()[1] == 0


def test_colours_can_be_turned_off(monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    terminal = Terminal(DIGITS)
    shown = terminal.screen("q ends")
    assert not re.search(r"\x1b\[[0-9;]*3[0-7]m", shown)
    terminal.child.send("q")
    assert terminal.ended()[1] == 0
