# SPDX-License-Identifier: Apache-2.0
"""Sentences about data stand in reports/answer. A renderer has labels: few words, no more.

check_sentences.py         fails where a renderer has a sentence that tools/labels.txt does not have

A sentence here is a string of five words or more, without markup and what is filled in. labels.txt
has those that are no sentence about data, a line each: fixed labels, messages of programs.
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
    """Strings of C++, those beside each other joined, without comments and includes."""
    source = re.sub(r"^#include[^\n]*|//[^\n]*", "", source, flags=re.M)
    for found in LITERAL.finditer(source):
        yield "".join(re.findall(r'"((?:[^"\\\n]|\\.)*)"', found.group()))


def sentences(source):
    for literal in literals(source):
        text = literal.replace('\\"', '"').replace("\\n", " ")
        text = re.sub(r'\b(?:title|aria-label)="([^"]*)"', r"> \1 <", text)  # what people read
        text = re.sub(r"<[^>]*>|\{[^}]*\}", " ", text)
        if len(re.findall(r"[A-Za-z][a-z]+", text)) >= WORDS:
            yield " ".join(text.split())


def found():
    """(file, sentence) of all renderers"""
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
