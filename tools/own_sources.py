# SPDX-License-Identifier: Apache-2.0
"""Prints the C++ sources of a compile_commands.json that are the project's own, not generated.

CUDA files are left out: clang-tidy 14 does not read the headers of current CUDA toolkits.
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
        if not relative.parts[0].startswith(("build", ".")):
            files.add(str(relative))
print("\n".join(sorted(files)))
