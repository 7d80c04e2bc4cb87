# SPDX-License-Identifier: Apache-2.0
"""Sentences about data stand in reports/answer. A renderer has labels: few words, no more.

check_sentences.py         fails where a renderer has more sentences than tools/sentences.txt allows
check_sentences.py --list  shows them

A sentence here is a string of five words or more, without markup and what is filled in. The list
counts what is still to move, by file; it only gets shorter.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
ALLOWED = ROOT / "tools/sentences.txt"
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
        text = re.sub(r"<[^>]*>|\{[^}]*\}", " ", text)
        if len(re.findall(r"[A-Za-z][a-z]+", text)) >= WORDS:
            yield " ".join(text.split())


def found():
    """{file: its sentences}"""
    files = sorted(file for folder in FOLDERS for file in (ROOT / folder).glob("*.cpp"))
    return {str(file.relative_to(ROOT)): list(sentences(file.read_text())) for file in files}


def allowed():
    rows = (line.split() for line in ALLOWED.read_text().splitlines() if not line.startswith("#"))
    return {file: int(count) for count, file in rows}


def main():
    limits, all_found = allowed(), found()
    if "--list" in sys.argv:
        for file, said in all_found.items():
            for sentence in said:
                print(f"{file}: {sentence}")
        return 0
    wrong = [f"{file}: {len(said)} sentences, {limits.get(file, 0)} in tools/sentences.txt: "
             f"{'put them into reports/answer' if len(said) > limits.get(file, 0) else 'lower the number'}"
             for file, said in all_found.items() if len(said) != limits.get(file, 0)]
    wrong += [f"{file}: is gone: take it out of tools/sentences.txt" for file in limits
              if file not in all_found]
    print("\n".join(wrong) or f"check_sentences: {sum(map(len, all_found.values()))} left to move")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
