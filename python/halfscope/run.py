# SPDX-License-Identifier: Apache-2.0
"""`halfscope run` and `python -m halfscope.run`: runs a Python script as it is and records its PyTorch
optimizers: docs/run.md."""

import argparse
import atexit
import builtins
import contextlib
import importlib.util
import itertools
import multiprocessing.spawn
import os
import sys
import types

from halfscope import BadInput
from halfscope._folders import require_no_logs
from halfscope._imports import after_import

_OLDEST = (1, 13)
_EXAMPLE = """example:  halfscope run train.py --batch-size 32
          torchrun --nproc-per-node 2 -m halfscope.run --every 100 train.py"""
_IMPORTS = "<frozen importlib", os.path.dirname(importlib.__file__) + os.sep
_PACKAGE = os.path.dirname(os.path.abspath(__file__)) + os.sep


class _Parser(argparse.ArgumentParser):
    def error(self, message):
        _say(f"{message.replace(', ...', '')}; see halfscope run --help")
        raise SystemExit(2)


def _count(text):
    if not (text.isascii() and text.isdecimal() and int(text) > 0):
        raise argparse.ArgumentTypeError(f"found {text!r}, expected a number of steps above 0")
    return int(text)


def _arguments(given):
    parser = _Parser(prog="halfscope run", epilog=_EXAMPLE, allow_abbrev=False,
                     formatter_class=argparse.RawDescriptionHelpFormatter,
                     description="Runs a Python script as it is, records its PyTorch optimizers, and "
                                 "prints the answer of halfscope recommend on stderr.")
    parser.add_argument("--every", type=_count, default=10, metavar="N",
                        help="steps from one histogram to the next (default: 10)")
    parser.add_argument("--sample-every", type=_count, metavar="N",
                        help="steps from one sample of full tensors to the next (default: none)")
    parser.add_argument("--out", metavar="RUN", help="folder of the log, which holds none yet "
                        "(default: the first free one of halfscope-runs/SCRIPT, halfscope-runs/SCRIPT-2, ...)")
    parser.add_argument("-m", action="store_true", dest="is_module",
                        help="SCRIPT is the name of a module, as for python -m")
    parser.add_argument("script", metavar="SCRIPT", help="the Python script")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, metavar="...",
                        help="the script's own options")
    return parser.parse_args(given)


def _say(text):
    """Prints lines to stderr, after all that the script printed."""
    with contextlib.suppress(Exception):  # the script may have closed it
        sys.stdout.flush()
    for line in text.splitlines():
        print(f"halfscope run: {line}", file=sys.stderr, flush=True)


def _rank_and_ranks():
    """Returns this process's rank and the number of ranks, as the launcher says them."""
    for rank, ranks in (("RANK", "WORLD_SIZE"), ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
                        ("PMI_RANK", "PMI_SIZE"), ("SLURM_PROCID", "SLURM_NTASKS"),
                        ("LOCAL_RANK", "WORLD_SIZE")):  # the last: processes of Lightning
        if os.environ.get(rank, "").isdecimal() and os.environ.get(ranks, "").isdecimal():
            return int(os.environ[rank]), int(os.environ[ranks])
    return 0, 1


def _folder(options):
    """Returns the folder for the log; makes it if no other rank looks for one. Raises BadInput.

    By default it is the first of halfscope-runs/SCRIPT, halfscope-runs/SCRIPT-2... that does not exist.
    One process makes it at once, so that of two programs each has its own; several ranks look before
    any writes. Scripts make and remove a folder runs, so ours has another name."""
    if options.out:
        require_no_logs(options.out)
    stem = os.path.splitext(os.path.basename(options.script))[0]
    for number in itertools.count(1):
        default = os.path.join("halfscope-runs", stem if number == 1 else f"{stem}-{number}")
        folder = os.path.abspath(options.out or default)
        if not options.out and os.path.lexists(folder):
            continue
        if not options.out and _rank_and_ranks()[1] > 1:
            return folder
        try:
            os.makedirs(folder, exist_ok=bool(options.out))
            return folder
        except FileExistsError:
            continue  # another program was faster
        except OSError as error:
            raise BadInput(f"{folder}: cannot make this folder ({error.strerror}); choose one that can "
                           "be written by --out") from None


def _code_of(script, is_module):
    """Returns (code, spec, path of the file) of a script or module. Raises BadInput or SyntaxError."""
    if not is_module:
        path = os.path.abspath(script)  # as Python since 3.9
        try:
            with open(path, "rb") as file:
                return compile(file.read(), path, "exec", dont_inherit=True), None, path
        except (OSError, ValueError) as error:
            if isinstance(error, SyntaxError):
                raise
            why = getattr(error, "strerror", None) or error
            raise BadInput(f"{script}: cannot be read as a Python script ({why}); check the path") from None
    try:
        spec = importlib.util.find_spec(script)
        if spec is not None and spec.submodule_search_locations is not None:
            spec = importlib.util.find_spec(f"{script}.__main__")
        code = spec and spec.loader.get_code(spec.name)
    except (ImportError, ValueError, AttributeError) as error:
        if _own(error.__traceback__, (_PACKAGE, *_IMPORTS)) is not None:
            raise  # in the code of a package
        raise BadInput(f"{script}: cannot be run as a module ({error}); check its name") from None
    if code is None:
        raise BadInput(f"{script}: no module of this name, or a package without __main__; check its name")
    return code, spec, spec.origin


class _Run:
    """Starts to record as soon as the process imports PyTorch."""

    def __init__(self, out, settings, joins=False):
        """joins: True in a further process of the script."""
        self.out, self.settings, self._joins = out, settings, joins
        self._process, self._rank = os.getpid(), _rank_and_ranks()[0]  # Lightning deletes variables
        self.record = None
        self._refused = None  # why PyTorch is not recorded
        after_import("torch", self._torch_is_imported)
        after_import("lightning.fabric.strategies.launchers.subprocess_script", self._launch_children)
        prepare = multiprocessing.spawn.get_preparation_data  # unpickled before the script's import
        multiprocessing.spawn.get_preparation_data = lambda name: {**prepare(name), "halfscope": self}

    def __reduce__(self):
        return _Run, (self.out, self.settings, True)  # its unpickling starts the recording

    def _torch_is_imported(self, torch):
        version = str(getattr(torch, "__version__", "0.0"))
        try:
            if tuple(map(int, version.split(".")[:2])) < _OLDEST:
                raise ImportError(f"PyTorch {version} is older than 1.13, the oldest that is recorded")
            from halfscope.torch import record

            self.record = record(self.out, **self.settings).start(self._joins)
        except Exception as error:  # the script runs, whatever is wrong here
            self._refused = str(error)

    def _launch_children(self, launcher):
        """Lightning starts each further rank by the command that this function returns."""
        original = launcher._basic_subprocess_cmd

        def command():
            python, *script = original()
            options = [f"--{name.replace('_', '-')}={value}" for name, value in self.settings.items() if value]
            return [python, "-m", "halfscope.run", *options, f"--out={self.out}", *script]

        launcher._basic_subprocess_cmd = command

    def end(self):
        """Ends the recording, and prints the answer in the process of rank 0."""
        if os.getpid() != self._process:
            return  # a fork
        try:
            self._end()
        except Exception as error:
            _say(f"{type(error).__name__}: {' '.join(str(error).split())}")

    def _end(self):
        if self.record is not None:
            self.record.stop()
        with contextlib.suppress(OSError):
            os.rmdir(self.out)  # only if it is empty
        if self._rank == 0:
            self._print_answer()

    def _print_answer(self):
        if self.record is None:
            _say(f"nothing was recorded: {self._refused or _other_framework()}")
            return
        folders = [os.path.relpath(folder) for folder in self.record.folders]
        if folders:
            _say(f"recorded in {', '.join(folders)}; a page of it: halfscope report {' '.join(folders)} "
                 "--out report.html")
            print(self.record.answer(), file=sys.stderr, flush=True)
            if not self.settings["sample_every"]:
                _say("lost weight updates were not counted; --sample-every 100 saves tensors for that")
        else:
            _say(self.record.answer())
        for note in self.record.notes:
            if folders or note != self.record.notes[0]:
                _say(note)


def _other_framework():
    names = [name for name in ("jax", "keras", "tensorflow") if name in sys.modules]
    ours = "jax" if names[:1] == ["jax"] else "keras"
    return "the script did not import PyTorch" + (
        f"; to record {names[0]}, see halfscope.{ours}" if names else "")


def _own(trace, hidden=(_PACKAGE,)):
    """Returns a traceback without this package's frames, or others whose files are hidden."""
    steps = []
    while trace is not None:
        steps.append(trace)
        trace = trace.tb_next
    for step in reversed(steps):
        if not step.tb_frame.f_code.co_filename.startswith(hidden):
            trace = types.TracebackType(trace, step.tb_frame, step.tb_lasti, step.tb_lineno)
    return trace


def _print(error):
    """Prints an exception, and those that led to it, as Python does without this package."""
    chain = [error]
    for one in chain:
        one.__traceback__ = _own(one.__traceback__)
        chain += [other for other in (one.__cause__, one.__context__) if other not in (None, *chain)]
    sys.excepthook(type(error), error, error.__traceback__)


def _execute(code, spec, path):
    """Runs a script as the module __main__. Returns the exception that ended it, which is printed
    as Python does, or None."""
    module = types.ModuleType("__main__")
    vars(module).update(__file__=path, __builtins__=builtins, __spec__=spec, __cached__=None,
                        __package__=spec and spec.parent, __loader__=spec and spec.loader)
    sys.modules["__main__"] = module
    try:
        exec(code, vars(module))
    except SystemExit as error:
        if error.code is None or isinstance(error.code, int):
            return error
        print(error.code, file=sys.stderr)
        return SystemExit(1)
    except BaseException as error:
        _print(error)
        return error
    return None


def _prepared(options):
    """Sets sys.path and sys.argv as Python does for the script. Returns (code, spec, path)."""
    if not getattr(sys.flags, "safe_path", False):
        sys.path[0] = os.getcwd() if options.is_module else os.path.dirname(os.path.realpath(options.script))
    sys.argv = ["-m" if options.is_module else options.script, *options.arguments]
    code, spec, path = _code_of(options.script, options.is_module)
    if options.is_module:
        sys.argv[0] = path
    return code, spec, path


def main(given=None):
    """Runs a script. Returns 0, or ends as the script does: with its exception or exit code."""
    options = _arguments(given)
    try:
        code, spec, path = _prepared(options)
        out = _folder(options)
    except BadInput as error:
        _say(str(error))
        return 1
    except Exception as error:  # an error in a package of the script, or a SyntaxError
        _print(error)
        return 1
    run = _Run(out, {"every": options.every, "sample_every": options.sample_every})
    atexit.register(run.end)  # when the script's threads have ended
    ended = _execute(code, spec, path)
    if ended is not None:
        sys.excepthook = lambda *_: None  # it is printed already; Python sets the exit code
        raise ended
    return 0


if __name__ == "__main__":
    from halfscope.run import main  # not __main__, which is the script

    sys.exit(main())
