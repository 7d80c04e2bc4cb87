# SPDX-License-Identifier: Apache-2.0
"""Comments that a stranger understands at first reading.

check_comments.py [PATH ...]       fails where a comment has words or shapes that house rules refuse;
                                   PATHs are folders or files; by default all of the product
check_comments.py --sample N SEED  prints N comments drawn at random, for people to judge

Refused are words that hide who does what ("told", "whom", "of which"), and sentences that begin in
the middle ("Of a file.", "Whether it ends.").
"""

import ast
import io
import pathlib
import random
import re
import sys
import tokenize

ROOT = pathlib.Path(__file__).resolve().parents[1]
FOLDERS = ("lib", "analyzers", "reports", "sim", "cli", "python/halfscope", "tools", "bench")
CPLUSPLUS = {".hpp", ".cpp", ".cu", ".cuh", ".h"}

# (what is refused, what to write)
WORDS = [
    (r"\btold\b", "name who reports it: 'is recorded', 'the log has'"),
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
# Words that must not begin a comment or a sentence in it.
BEGINNINGS = ("of", "whether", "what", "whose", "told", "those", "where")


def blocks(source):
    """(line, text) of each comment of C++. Lines of // without code go on with the line above."""
    found, goes_on = [], False
    for number, line in enumerate(source.splitlines(), 1):
        code, marks, text = line.partition("//")
        is_comment = bool(marks) and code.count('"') % 2 == 0  # not within a string: "http://"
        text = text.lstrip("/<").strip()
        if is_comment and goes_on and not code.strip():
            found[-1] = (found[-1][0], f"{found[-1][1]} {text}".strip())
        elif is_comment:
            found.append((number, text))
        goes_on = is_comment
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
    """(line, text) of each comment that is written for people."""
    source = file.read_text()
    found = blocks(source) if file.suffix in CPLUSPLUS else docstrings(source)
    for line, text in found:
        text = re.sub(r"^SPDX-License-Identifier: \S+\s*", "", text)
        if text and not re.match(r"NOLINT|clang-format|noqa|type:|!/|namespace\b", text):
            yield line, text


def sentences(text):
    text = re.sub(r'"[^"]*"|`[^`]*`|\'[^\']{2,}\'', "X", text)  # quotations may have any words
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
    wrong = [f"{file.relative_to(ROOT)}:{line}: {fault}: {text[:90]}"
             for file in files(sys.argv[1:] or FOLDERS) for line, text in comments(file)
             for fault in faults(text)]
    print("\n".join(wrong) or "check_comments: all plain")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
