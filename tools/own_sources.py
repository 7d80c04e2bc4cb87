# SPDX-License-Identifier: Apache-2.0
"""Prints the project's own C++ files in a compile_commands.json, for `./run lint`.

Without an option prints the sources for clang-tidy, one per line, without CUDA files (clang-tidy 14
cannot read the headers of current CUDA toolkits) and without tests. With --test-commands prints,
for each test, a shell command that checks its syntax.
"""

import argparse
import json
import pathlib
import re
import shlex

ROOT = pathlib.Path(__file__).resolve().parent.parent


def own_files(commands):
    """Yields (path below the root, entry) of each C++ file in a folder of the project."""
    for entry in json.loads(commands.read_text()):
        path = (pathlib.Path(entry["directory"]) / entry["file"]).resolve()
        if path.suffix == ".cpp" and ROOT in path.parents:
            relative = path.relative_to(ROOT)
            if not relative.parts[0].startswith(("build", ".")):
                yield relative, entry


def syntax_command(entry):
    """Returns an entry's command without output and compiler cache; it only checks the syntax."""
    command = re.sub(r" -o \S+|^\S*ccache ", " ", entry["command"])
    return f"cd {shlex.quote(entry['directory'])} && {command} -fsyntax-only"


parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("commands", type=pathlib.Path)
parser.add_argument("--test-commands", action="store_true")
asked = parser.parse_args()
lines = {
    syntax_command(entry) if asked.test_commands else str(path)
    for path, entry in own_files(asked.commands)
    if (path.parts[0] == "tests") == asked.test_commands
}
print("\n".join(sorted(lines)))
