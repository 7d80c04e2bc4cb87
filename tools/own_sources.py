# SPDX-License-Identifier: Apache-2.0
"""Prints the C++ sources of a compile_commands.json that are the project's own, not generated.

Left out: CUDA files, since clang-tidy 14 does not read the headers of current CUDA toolkits; and
tests, which the compiler's warnings judge.
"""

import json
import pathlib
import sys

root = pathlib.Path(__file__).resolve().parent.parent
files = set()
for entry in json.loads(pathlib.Path(sys.argv[1]).read_text()):
    path = (pathlib.Path(entry["directory"]) / entry["file"]).resolve()
    if path.suffix == ".cpp" and root in path.parents:
        relative = path.relative_to(root)
        if not relative.parts[0].startswith(("build", ".", "tests")):
            files.add(str(relative))
print("\n".join(sorted(files)))
