# SPDX-License-Identifier: Apache-2.0
"""Finds the files of data/stories and reports/gallery that a new run does not reproduce."""

import re

# Scripts, style sheets and their digests in a page. They are not compared.
BUNDLED = re.compile(r"<script>.*?</script>|<style>.*?</style>"
                     r"|<script [^>]*id=\"(?:vega|script)\"[^>]*>.*?</script>"
                     r'|<meta http-equiv="Content-Security-Policy"[^>]*>', re.DOTALL)
SHOWN = 60  # characters of a difference that are printed


def contents(file):
    """Returns the text of a file to compare; a page without its scripts and styles."""
    text = file.read_text(encoding="utf-8")
    return BUNDLED.sub("", text) if file.suffix == ".html" else text


def difference(made, shipped):
    """Returns a sentence about the first difference. None if there is none."""
    if not shipped.is_file():
        return "is not there"
    one, other = contents(shipped), contents(made)
    if one == other:
        return None
    at = next((i for i, (a, b) in enumerate(zip(one, other)) if a != b),
              min(len(one), len(other)))
    begin = max(0, at - SHOWN // 2)
    return (f"differs at character {at} of {len(one)}: {one[begin:begin + SHOWN]!r} "
            f"is now {other[begin:begin + SHOWN]!r}")


def differences(made, shipped, files):
    """[file, sentence] of each of the files, relative to both folders, that differs."""
    found = [[file, difference(made / file, shipped / file)] for file in files]
    return [[file, what] for file, what in found if what]
