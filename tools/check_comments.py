# SPDX-License-Identifier: Apache-2.0
"""Comments that a stranger understands at first reading.

check_comments.py [PATH ...]       fails where a comment has words or shapes that house rules refuse;
                                   PATHs are folders or files, without any: all of the product
check_comments.py --sample N SEED  prints N comments drawn at random, for people to judge

Refused are words that hide who does what ("told", "whom", "of which"), and sentences that begin in
the middle ("Of a file.", "Whether it ends."). tools/comments.txt lists those that are allowed.
"""

import ast
import io
import pathlib
import random
import re
import sys
import tokenize

ROOT = pathlib.Path(__file__).resolve().parents[1]
ALLOWED = ROOT / "tools/comments.txt"
FOLDERS = ("lib", "analyzers", "reports", "sim", "cli", "python/halfscope", "tools", "bench", "fuzz")
CPLUSPLUS = {".hpp", ".cpp", ".cu", ".cuh", ".h"}

# (what is refused, what to write)
WORDS = [
    (r"\b(?:is|are|was|were|be|been|as|once|not) told\b|\btold\b", "name who reports it: 'is recorded', 'the log has'"),
    (r"\btells?\b|\btelling\b", "use 'reports', 'shows', 'passes to' or 'says'"),
    (r"\bwhom\b", "name the function or the class"),
    (r"\bof which\b|\bof whom\b", "begin a new sentence"),
    (r"\bholds? over\b|\bholds? no more\b", "use 'takes precedence over', 'is no longer valid'"),
    (r"\bat hand\b", "use 'available'"),
    (r"\bwhat becomes of\b|\bbecomes of\b", "use 'the outcome of'"),
    (r"\bmay be empty\b|\bmay be null\b", "say what empty or null means"),
    (r"\bnobody knows\b", "use 'unknown'"),
    (r"\bwhat is asked\b|\bis asked for\b", "use 'requested'"),
]
# Words that begin no comment, and no sentence in one.
BEGINNINGS = ("of", "whether", "what", "whose", "told", "those", "where")


def blocks(source):
    """(line, text) of each comment of C++: lines of // that follow each other are one."""
    found, first, texts = [], 0, []
    for number, line in enumerate(source.splitlines(), 1):
        code, marks, text = line.partition("//")
        own = not code.strip()
        if '"' in code and code.count('"') % 2:  # within a string: "http://"
            marks = ""
        text = text.lstrip("/").lstrip("<").strip()
        if marks and own and texts and not texts[0][1] is False:
            texts.append((number, True, text))
            continue
        if texts:
            found.append((first, " ".join(t for _, _, t in texts)))
            texts = []
        if marks:
            first, texts = number, [(number, own, text)]
            if not own:  # behind code: it may go on in the lines below
                texts = [(number, True, text)]
    if texts:
        found.append((first, " ".join(t for _, _, t in texts)))
    return found


def docstrings(source):
    """(line, text) of each docstring and comment of Python."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            text = ast.get_docstring(node)
            if text:
                found.append((node.body[0].lineno, text))
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            found.append((token.start[0], token.string.lstrip("# ")))
    return sorted(found)


def comments(file):
    source = file.read_text()
    found = blocks(source) if file.suffix in CPLUSPLUS else docstrings(source)
    return [(line, text) for line, text in found
            if text and not re.match(r"SPDX|NOLINT|clang-format|noqa|type:|!/|namespace\b", text)]


def sentences(text):
    text = re.sub(r'"[^"]*"|`[^`]*`|\'[^\']{2,}\'', "X", text)  # quotations are not judged
    return [part.strip() for part in re.split(r"(?<=[.;:])\s+(?=[A-Z])", text) if part.strip()]


def faults(text):
    quoted_out = " ".join(sentences(text))
    for pattern, way in WORDS:
        match = re.search(pattern, quoted_out, re.I)
        if match:
            yield f"'{match.group()}': {way}"
    for sentence in sentences(text):
        first = re.match(r"[A-Za-z]+", sentence)
        if first and first.group().lower() in BEGINNINGS:
            yield f"begins with '{first.group()}': write a sentence, or a noun with its name"


def files(paths):
    for path in paths:
        path = ROOT / path
        for file in [path] if path.is_file() else sorted(path.rglob("*")):
            if file.suffix in CPLUSPLUS or file.suffix == ".py":
                yield file


def main():
    if sys.argv[1:2] == ["--sample"]:
        drawn = [(file.relative_to(ROOT), line, text) for file in files(FOLDERS)
                 for line, text in comments(file)]
        for file, line, text in random.Random(int(sys.argv[3])).sample(drawn, int(sys.argv[2])):
            print(f"{file}:{line}: {text}")
        return 0
    allowed = set(ALLOWED.read_text().splitlines()) if ALLOWED.exists() else set()
    wrong = [f"{file.relative_to(ROOT)}:{line}: {fault}: {text[:90]}"
             for file in files(sys.argv[1:] or FOLDERS) for line, text in comments(file)
             for fault in faults(text) if text not in allowed]
    print("\n".join(wrong) or "check_comments: all plain")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
