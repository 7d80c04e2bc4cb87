# SPDX-License-Identifier: Apache-2.0
"""Checks that all sentences about data are in reports/answer. Renderers may only have short labels.

check_sentences.py         fails if a renderer has a sentence that is not in tools/labels.txt

A sentence is a string of five words or more, without markup and placeholders. labels.txt lists, one
per line, the long strings that are not about data: fixed labels, messages of programs.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
LABELS = ROOT / "tools/labels.txt"
FOLDERS = ("cli/terminal", "reports/page", "reports/markdown")
WORDS = 5
LITERAL = re.compile(r'"(?:[^"\\\n]|\\.)*"(?:\s*"(?:[^"\\\n]|\\.)*")*')


def literals(source):
    """Yields the string literals of C++ source, adjacent ones joined, without comments."""
    source = re.sub(r"^#include[^\n]*|//[^\n]*", "", source, flags=re.M)
    for found in LITERAL.finditer(source):
        yield "".join(re.findall(r'"((?:[^"\\\n]|\\.)*)"', found.group()))


def sentences(source):
    for literal in literals(source):
        text = literal.replace('\\"', '"').replace("\\n", " ")
        text = re.sub(r'\b(?:title|aria-label)="([^"]*)"', r"> \1 <", text)  # people read them
        text = re.sub(r"<[^>]*>|\{[^}]*\}", " ", text)
        if len(re.findall(r"[A-Za-z][a-z]+", text)) >= WORDS:
            yield " ".join(text.split())


def found():
    """Returns (file, sentence) for all sentences in renderers."""
    files = sorted(file for folder in FOLDERS for ending in ("cpp", "hpp")
                   for file in (ROOT / folder).glob(f"*.{ending}"))
    return [(str(file.relative_to(ROOT)), sentence) for file in files
            for sentence in sentences(file.read_text())]


def labels():
    return [line for line in LABELS.read_text().splitlines() if line and not line.startswith("#")]


def main():
    allowed, all_found = labels(), found()
    wrong = [f"{file}: '{sentence}': put it into reports/answer" for file, sentence in all_found
             if sentence not in allowed]
    wrong += [f"tools/labels.txt: '{label}' is in no renderer: take it out" for label in allowed
              if label not in (sentence for _, sentence in all_found)]
    print("\n".join(wrong) or f"check_sentences: {len(all_found)} labels, no sentence about data")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
