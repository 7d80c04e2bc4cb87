# SPDX-License-Identifier: Apache-2.0
"""Joins JSON files that each hold a list into one list on stdout."""

import json
import pathlib
import sys

rows = [row for path in sys.argv[1:] for row in json.loads(pathlib.Path(path).read_text())]
json.dump(rows, sys.stdout, indent=1)
print()
