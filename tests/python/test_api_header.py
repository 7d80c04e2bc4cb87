# SPDX-License-Identifier: Apache-2.0
"""lib/halfscope/halfscope.hpp lists the public functions of the number, array and block headers, no other.

In it, "// number/x.hpp" starts the list of a header, and "//   name, name   what" is an entry.
"""

import pathlib
import re

LIB = pathlib.Path(__file__).resolve().parents[2] / "lib" / "halfscope"
UMBRELLA = LIB / "halfscope.hpp"
INTERNAL = {"detail", "element", "steps"}  # namespaces that are no part of the interface
UNLISTED = {
    "number/bits.hpp": "no function outside detail",
    "number/half_limits.hpp": "part of half.hpp",
    "number/half_literals.hpp": "part of half.hpp",
}


def without_comments(text):
    text = re.sub(r"//[^\n]*", "", text)
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    text = re.sub(r'"(?:\\.|[^"\\])*"', '""', text)
    text = re.sub(r"'(?:\\.|[^'\\])'", "' '", text)
    return re.sub(r"^\s*#[^\n]*(?:\\\n[^\n]*)*", "", text, flags=re.MULTILINE)


def declarations(text):
    """What is declared at namespace scope, bodies and internal namespaces left out."""
    stack, statement, found = [], "", []
    for char in text:
        hidden = "body" in stack
        if char == "{":
            head = " ".join(statement.split())
            namespace = re.fullmatch(r"(?:inline )?namespace ([\w:]*)", head)
            if hidden or not namespace:
                stack.append("body")
                if not hidden:
                    statement += " {} "
                continue
            internal = namespace[1] == "" or INTERNAL & set(namespace[1].split("::"))
            stack.append("body" if internal else "namespace")
            statement = ""
        elif char == "}":
            body_ends = stack.pop() == "body" and "body" not in stack
            if body_ends and "(" in statement and statement.count("(") == statement.count(")"):
                found.append(statement)  # else `= {}` of an argument, or a class, which `;` ends
                statement = ""
        elif not hidden:
            if char == ";":
                found.append(statement)
                statement = ""
            else:
                statement += char
    assert not stack
    return [" ".join(s.split()) for s in found]


def function_name(declaration):
    while declaration.startswith("template"):
        angles, parentheses, end = 0, 0, declaration.index("<")
        for end in range(declaration.index("<"), len(declaration)):
            parentheses += {"(": 1, ")": -1}.get(declaration[end], 0)
            angles += {"<": 1, ">": -1}.get(declaration[end], 0) if parentheses == 0 else 0
            if angles == 0:
                break
        declaration = declaration[end + 1 :].strip()
    declaration = re.sub(r"^requires\s*\((?:[^()]|\([^()]*\))*\)\s*", "", declaration)
    head = declaration.split("(")[0]
    if "(" not in declaration or "=" in head or "{" in head or "operator" in head:
        return None
    words = re.findall(r"\w+", head)
    if not words or words[0] in {"static_assert", "using", "friend"}:
        return None
    return words[-1] if len(words) > 1 else None


def functions_of(header):
    names = map(function_name, declarations(without_comments((LIB / header).read_text())))
    return {name for name in names if name}


def public_headers():
    """All of number/; of array/ what cmake/Package.cmake installs; of block/ the quantiser."""
    patterns = ("number/*.hpp", "array/array*.hpp", "block/quantise*.hpp")
    found = [str(p.relative_to(LIB)) for pattern in patterns for p in sorted(LIB.glob(pattern))]
    found += [f"block/{name}.hpp" for name in ("element", "recipe", "scale")]
    assert set(UNLISTED) <= set(found)
    return [h for h in found if h not in UNLISTED]


def listed():
    header, lists = None, {}
    for line in UMBRELLA.read_text().splitlines():
        if start := re.match(r"// (\w+/\w+\.hpp)\b", line):
            header = start[1]
            lists.setdefault(header, [])
        elif entry := re.match(r"//   ([a-z]\w*(?:, [a-z]\w*)*),?(?:  +\S|$)", line):
            assert header, line
            lists[header] += entry[1].split(", ")
    return lists


def test_the_parser_sees_functions_and_nothing_else():
    text = """
    namespace a { /// f(x)
    struct S { int member() const { return 1; } };
    inline constexpr int kX = g(1);
    enum class E : int { one, two };
    HD constexpr int one(int x) { if (x) { return h(x); } return 0; }
    Rounded plain(Modes modes = {}) { return {}; }
    template <typename T, std::size_t n = (3 > 2)>
    requires(n != (4)) std::span<const int> two(T x = {});
    namespace detail { int hidden(); } // namespace detail
    void three(int a = 1), E;
    bool operator==(S, S);
    }
    """
    names = [n for n in map(function_name, declarations(without_comments(text))) if n]
    assert names == ["one", "plain", "two", "three"]


def test_the_list_is_complete_and_true():
    lists = listed()
    assert sum(map(len, lists.values())) > 60
    for header in public_headers():
        have, want = lists.pop(header, []), functions_of(header)
        assert sorted(have) == sorted(want), header
    assert not lists, "headers that do not exist"


def test_a_person_can_read_it_whole():
    assert len(UMBRELLA.read_text().splitlines()) < 150


def test_every_listed_header_is_included_or_said_not_to_be():
    text = UMBRELLA.read_text()
    for header in listed():
        included = f'#include "halfscope/{header}"' in text
        said = re.search(rf"^// {re.escape(header)}\b.*\(not included", text, re.MULTILINE)
        assert included != bool(said), header
