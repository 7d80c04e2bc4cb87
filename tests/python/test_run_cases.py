# SPDX-License-Identifier: Apache-2.0
"""halfscope run: the script's output, exception and exit code stay its own, and what cannot be recorded is
one line."""

import concurrent.futures
import sys

import pytest
from recorded_scripts import execute

from halfscope import run

TRAINS = """import sys, torch
def train():
    model = torch.nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(3):
        optimizer.zero_grad()
        model(torch.randn(4, 8)).square().mean().backward()
        optimizer.step()
    return model
if __name__ == "__main__":
    train()
    print(__name__, __file__, sys.argv, sys.path[0])
"""
ENDS = {
    "exception": "import trains\ntrains.train()\nwaits = trains.torch.optim.SGD([trains.torch.ones(1)], lr=1.0)\n"
                 "trains.torch.nn.Linear(8, 2)(trains.torch.ones(1, 3))\n",
    "code": "import trains, sys\ntrains.train()\nsys.exit(7)\n",
    "text": "import trains, sys\ntrains.train()\nsys.exit('the text')\n",
    "interrupt": "import trains, os, signal, atexit\natexit.register(print, 'at exit')\ntrains.train()\n"
                 "os.kill(os.getpid(), signal.SIGINT)\n",
    "syntax": "print('(\n",
    "chain": "import trains\ntrains.train()\nwaits = trains.torch.optim.SGD([trains.torch.ones(1)], lr=1.0)\n"
             "try:\n    trains.torch.nn.Linear(8, 2)(trains.torch.ones(1, 3))\n"
             "except RuntimeError as error:\n    raise ValueError('again') from error\n",
    "no stdout": "import trains, sys\ntrains.train()\nsys.stdout.close()\n",
    "thread": "import trains, threading, time\n"
              "threading.Thread(target=lambda: (time.sleep(0.5), trains.train(), print('end'))).start()\n",
    "folder": "import trains, os\ntrains.train()\nos.mkdir('runs')\nos.rmdir('runs')\n"}
NOTHING = {
    "no PyTorch": ("print('hi')", "the script did not import PyTorch"),
    "JAX": ("import sys; sys.modules['jax'] = sys",
            "the script did not import PyTorch; to record jax, see halfscope.jax"),
    "old": ("import sys, pathlib; sys.path.insert(0, '.'); pathlib.Path('torch.py').write_text("
            "'__version__ = \"1.12.1\"'); import torch",
            "PyTorch 1.12.1 is older than 1.13, the oldest that is recorded"),
    "no optimizer": ("import torch", "no PyTorch optimizer was made")}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "trains.py").write_text(TRAINS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", sys.path[:])
    monkeypatch.setattr(sys, "argv", sys.argv)
    return tmp_path


@pytest.mark.parametrize("end", ENDS)
def test_the_script_ends_as_without_us(folder, end):
    (folder / "script.py").write_text(ENDS[end])
    code = {"exception": 1, "code": 7, "text": 1, "interrupt": -2, "syntax": 1, "chain": 1}.get(end, 0)
    plain_out, plain = execute("script.py", folder=folder, expect=code)
    out, said = execute("-m", "halfscope.run", "script.py", folder=folder, expect=code)
    assert out == plain_out
    assert said.startswith(plain)
    if end == "syntax":
        assert said == plain
    else:
        first, *answer = said[len(plain):].splitlines()
        assert first.startswith("halfscope run: recorded in halfscope-runs/script; a page of it: halfscope report")
        assert "loss scale" in answer[0] or "change nothing" in answer[0]


@pytest.mark.parametrize("case", NOTHING)
def test_nothing_to_record(folder, case):
    text, reason = NOTHING[case]
    (folder / "script.py").write_text(text)
    _, said = execute("-m", "halfscope.run", "script.py", folder=folder)
    assert said == f"halfscope run: nothing was recorded: {reason}\n"
    assert not (folder / "halfscope-runs/script").exists()


@pytest.mark.parametrize("text,expected", [
    ("import torch\nraise AttributeError('of the package')\n", "AttributeError: of the package"),
    ("import no_such_part\n", "ModuleNotFoundError: No module named 'no_such_part'"),
    ("import sys\nraise ValueError(sys.argv)\n", "ValueError: ['-m', '--lr', '1']")])
def test_a_package_that_cannot_be_imported(folder, text, expected):
    (folder / "package").mkdir()
    (folder / "package/__init__.py").write_text(text)
    (folder / "package/part.py").write_text("")
    _, said = execute("-m", "halfscope.run", "-m", "package.part", "--lr", "1", folder=folder, expect=1)
    assert said.splitlines()[-1] == expected and "halfscope" not in said


POOL = """import torch, trains
def train(number):
    torch.manual_seed(number)
    return trains.train() and None
if __name__ == "__main__":
    with torch.multiprocessing.get_context("fork").Pool(3) as pool:
        pool.map(train, range(3), chunksize=1)
"""


def test_each_process_has_a_folder_of_its_own(folder):
    (folder / "script.py").write_text(POOL)
    execute("-m", "halfscope.run", "script.py", folder=folder)
    logs = sorted((folder / "halfscope-runs/script").iterdir())
    assert all(len(list(log.glob("*tfevents*"))) == 1 and (log / "run.json").exists() for log in logs)
    assert [log.name for log in logs] == ["optimizer-1", "optimizer-2", "optimizer-3"]


def test_of_many_processes_one_gets_a_folder(tmp_path):
    torch = pytest.importorskip("torch")
    from halfscope.torch import record

    recording = record(tmp_path / "run")
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        folders = list(pool.map(lambda _: recording.free_folder(), range(64)))
    assert len(set(folders)) == 64 and torch


def test_a_module_and_a_script_that_run_again(folder):
    for module in (True, False):
        command = ["-m", "trains"] if module else ["trains.py"]
        plain, _ = execute(*command, "--every", "x", folder=folder)
        out, _ = execute("-m", "halfscope", "run", *command, "--every", "x", folder=folder)
        assert out == plain
    assert sorted(path.name for path in (folder / "halfscope-runs").iterdir()) == ["trains", "trains-2"]


@pytest.mark.parametrize("given,code,line", [
    ([], 2, "the following arguments are required: SCRIPT; see halfscope run --help"),
    (["--every", "0", "trains.py"], 2, "argument --every: found '0', expected a number of steps above 0; "
                                       "see halfscope run --help"),
    (["missing.py"], 1, "missing.py: cannot be read as a Python script (No such file or directory); check the "
                        "path"),
    (["."], 1, ".: cannot be read as a Python script (Is a directory); check the path"),
    (["-m", "no_such"], 1, "no_such: no module of this name, or a package without __main__; check its name"),
    (["--out", "full", "trains.py"], 1, "full: holds a run log already (run.json), and a log is never written "
                                        "over; log to another folder, or delete this one"),
    (["--out", "trains.py", "trains.py"], 1, "trains.py: is a file, expected a folder for the log; name "
                                             "another"),
    (["--out", "trains.py/x", "trains.py"], 1, "{}/trains.py/x: cannot make this folder (Not a directory); "
                                               "choose one that can be written by --out")])
def test_bad_input_is_one_line_before_the_script_starts(folder, capsys, given, code, line):
    (folder / "full").mkdir()
    (folder / "full/run.json").write_text("{}")
    try:
        ended = run.main(given)
    except SystemExit as error:
        ended = error.code
    assert ended == code
    assert capsys.readouterr() == ("", f"halfscope run: {line.format(folder)}\n")
    assert (folder / "full/run.json").read_text() == "{}"


def test_the_folder_of_another_program_is_left_alone(folder):
    (folder / "halfscope-runs/script").mkdir(parents=True)
    (folder / "script.py").write_text("print('hi')")
    assert run._folder(run._arguments(["script.py"])) == str(folder / "halfscope-runs/script-2")
