# SPDX-License-Identifier: Apache-2.0
"""Which files of data/stories and reports/gallery do not come out again."""

import re

# Programs and style sheets of a page, and their digests: its data and its text are elsewhere.
BUNDLED = re.compile(r"<script>.*?</script>|<style>.*?</style>"
                     r"|<script [^>]*id=\"(?:vega|script)\"[^>]*>.*?</script>"
                     r'|<meta http-equiv="Content-Security-Policy"[^>]*>', re.DOTALL)
SHOWN = 60  # characters of a difference


def contents(file):
    """What is compared: a page without the scripts and styles that every page has."""
    text = file.read_text(encoding="utf-8")
    return BUNDLED.sub("", text) if file.suffix == ".html" else text


def difference(made, shipped):
    """A sentence about the first difference; None where there is none."""
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
