# SPDX-License-Identifier: Apache-2.0
"""The magic %%halfscope of Jupyter and IPython, after `%load_ext halfscope`: docs/integrations.md."""

import ast
import itertools
import os

from IPython.core.error import UsageError
from IPython.core.magic_arguments import MagicArgumentParser
from IPython.display import display

from halfscope._halfscope import BadInput
from halfscope._logs import recommend
from halfscope._parts import part

_ARGUMENTS = MagicArgumentParser("%%halfscope", description="Records the PyTorch optimizers that step in "
                                 "the cell, and displays the answer.")
_ARGUMENTS.add_argument("--every", type=int, default=10, help="steps whose histograms are recorded")
_ARGUMENTS.add_argument("--sample-every", type=int, help="steps whose full tensors are recorded; none by default")
_ARGUMENTS.add_argument("--out", help="folder of the log; by default runs/cell-N, the first that is free")
_ARGUMENTS.add_argument("name", nargs="?", help="variable for the answer; a list of several optimizers' answers")


def load_ipython_extension(shell):
    """Called by `%load_ext halfscope`: defines the magic."""
    def halfscope(line, cell):
        __tracebackhide__ = True
        _record(shell, _ARGUMENTS.parse_argstring(line), cell)

    halfscope.__doc__ = _ARGUMENTS.format_help()
    shell.register_magic_function(halfscope, "cell")


def _record(shell, arguments, cell):
    """Runs a cell, whose exceptions end it as without the magic, and displays the answer."""
    __tracebackhide__ = True
    if arguments.name and not arguments.name.isidentifier():
        raise UsageError(f"%%halfscope: found {arguments.name!r}, expected the name of a variable")
    record = part("halfscope.torch", "%%halfscope", "torch").record
    out = arguments.out or next(folder for n in itertools.count(1)
                                if not os.path.exists(folder := f"runs/cell-{n}"))
    try:
        recording = record(out, arguments.every, sample_every=arguments.sample_every).start()
    except (TypeError, ValueError) as error:
        raise UsageError(f"%%halfscope: {error}") from None
    try:
        _execute(shell, cell)
    finally:
        recording.stop()
    answers = [answer for folder in recording.folders if (answer := _displayed(os.path.relpath(folder)))]
    for line in recording.notes or ([] if recording.folders else [recording.answer()]):
        print(f"%%halfscope: {line}")
    if arguments.name:
        shell.user_ns[arguments.name] = answers[0] if len(answers) == 1 else answers or None


def _displayed(folder):
    print(f"Recorded in {folder}")
    try:
        answer = recommend(folder)
    except BadInput as error:
        return print(error)
    display(answer)
    return answer


def _execute(shell, cell):
    """Runs the text of a cell in the user's names, and displays the value of its last line
    unless that ends with a semicolon."""
    __tracebackhide__ = True
    text = shell.transform_cell(cell)
    name = shell.compile.cache(text, shell.execution_count)  # tracebacks show its lines
    lines = shell.transform_ast(shell.compile.ast_parse(text, filename=name)).body
    quiet = text.rstrip().endswith(";") or not lines or not isinstance(lines[-1], ast.Expr)
    shown = [] if quiet else [lines.pop()]
    for tree, mode in ((ast.Module(lines, []), "exec"), (ast.Interactive(shown), "single")):
        exec(shell.compile(tree, name, mode), shell.user_ns)
