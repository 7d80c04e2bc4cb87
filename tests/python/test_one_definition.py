# SPDX-License-Identifier: Apache-2.0
"""No type is defined twice: two types of one name in one program are undefined behaviour, and a
linker keeps either one's functions (C++20, [basic.def.odr])."""

import collections
import re

from program import ROOT

OWN = ("lib", "analyzers", "sim", "reports", "cli", "python/src")

OPENS = re.compile(r"^(?:inline )?namespace ([\w:]*) ?\{")
CLOSES = re.compile(r"^\}  // namespace ?([\w:]*)")
DEFINES = re.compile(r"^(?:struct|class|enum class|enum|union) (?:alignas\(\w+\) )?((?:\w+::)*\w+)\b(?!\s*<|::)[^;]*$")


def definitions(text):
    """Full names of the types that a file defines outside of unnamed namespaces. Ours are laid out
    by clang-format: what stands in a namespace begins its line."""
    spaces = []
    for line in text.splitlines():
        if (opened := OPENS.match(line)) and not line.endswith("}"):
            spaces.append(opened[1])
        elif CLOSES.match(line):
            spaces.pop()
        elif (defined := DEFINES.match(line)) and "" not in spaces:
            yield "::".join([*spaces, defined[1]])


def defined_twice(texts):
    """texts: {file: its text}"""
    where = collections.defaultdict(list)
    for file, text in texts.items():
        for name in set(definitions(text)):  # once each: of #if and #else there is one
            where[name].append(str(file))
    return {name: files for name, files in where.items() if len(files) > 1}


def test_a_name_given_twice_is_found():
    head = "namespace halfscope::analyzers {\n"
    tail = "\n}  // namespace halfscope::analyzers\n"
    hidden = "namespace {\nstruct Largest {\n};\n}  // namespace\n"
    texts = {"a.hpp": f"{head}struct Largest {{\n  double x;\n}};{tail}",
             "b.hpp": f"{head}enum class Largest {{ one }};{tail}",
             "c.cpp": f"{head}{hidden}struct Largest;{tail}",
             "d.cpp": "namespace halfscope::sim {\nstruct Largest {};\n}  // namespace halfscope::sim\n"}
    assert defined_twice({**texts, "b.hpp": f"{head}enum class Largest {{\n  one\n}};{tail}"}) == {
        "halfscope::analyzers::Largest": ["a.hpp", "b.hpp"]}
    assert defined_twice({name: texts[name] for name in ("a.hpp", "c.cpp", "d.cpp")}) == {}


def test_no_type_is_defined_twice():
    files = [file for folder in OWN for kind in ("hpp", "cpp", "cu", "cuh")
             for file in (ROOT / folder).rglob(f"*.{kind}")]
    texts = {file.relative_to(ROOT): file.read_text() for file in files}
    assert sum(len(list(definitions(text))) for text in texts.values()) > 500  # it does look
    assert defined_twice(texts) == {}
