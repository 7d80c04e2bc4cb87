# SPDX-License-Identifier: Apache-2.0
"""Writes the schemas, the tables of fields in docs, and the Python classes from docs/fields.

json_fields.py           writes docs/schema, the tables between `<!-- fields NAME -->` and
                         `<!-- /fields -->` in docs/*.md, and python/halfscope/_fields.py
json_fields.py --check   exit code 1 if one of these files differs

docs/fields/common.fields describes the notation.
"""

import json
import keyword
import pathlib
import re
import sys
import textwrap

ROOT = pathlib.Path(__file__).resolve().parents[1]
FIELD = re.compile(r"  (\w+)(\?)?: (.+?) -- (.+)")
OBJECT = re.compile(r"(\w+)(\[1\.\.\])? -- (.+)")
DOCUMENT = re.compile(r'document "(.+)": (.+)')
ALIAS = re.compile(r"type (\w+): (.+?) -- (.+)")
TOKEN = re.compile(r'\s*("[^"]*"|/[^/]*/|[A-Za-z]\w*|-?\d+|\.\.|[<>]=?|[][(){},:|?])')
TABLE = re.compile(r"(<!-- fields (\w+) -->\n).*?(<!-- /fields -->)", re.DOTALL)
LINK = re.compile(r"\[([^]]+)\]\(([^)#]+)[^)]*\)")

BUILTIN = {"true": {"const": True}} | {
    name: {"type": name} for name in ("integer", "number", "string", "boolean", "null")}
LIMITS = {">": "exclusiveMinimum", ">=": "minimum", "<": "exclusiveMaximum", "<=": "maximum"}
PYTHON = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}
RETURNED = ["analyze", "recommend", "compare", "policies", "reduce", "weights"]  # by Python, in this order
HEADER = '''# SPDX-License-Identifier: Apache-2.0
"""The objects in results, and their fields (docs/json.md). Written by tools/json_fields.py.

A field that a log cannot answer is None as an attribute, and no key of the mapping.
"""

from __future__ import annotations

from typing import Literal

from halfscope._records import Bounds, Record, field
'''


class Type:
    """A type in the notation of docs/fields, parsed into a JSON schema. Objects are references."""

    def __init__(self, text):
        self.rest = TOKEN.findall(text)
        self.schema = self.union()
        if self.rest or TOKEN.sub("", text).strip():
            raise SystemExit(f"cannot read the type {text!r} from {self.rest[:1]} on")

    def take(self, *wanted):
        """The next token if it is one of these, else None."""
        return self.rest.pop(0) if self.rest and self.rest[0] in wanted else None

    def need(self, token):
        if not self.take(token):
            raise SystemExit(f"expected {token!r} before {self.rest[:3]}")

    def number(self):
        return int(self.rest.pop(0)) if self.rest and re.fullmatch(r"-?\d+", self.rest[0]) else None

    def listed(self, item, end):
        """Items between commas, up to the token `end`."""
        items = [item()]
        while self.take(","):
            items.append(item())
        self.need(end)
        return items

    def union(self):
        parts = [self.part()]
        while self.take("|"):
            parts.append(self.part())
        if len(parts) == 1:
            return parts[0]
        if all(set(part) == {"const"} for part in parts):
            return {"enum": [part["const"] for part in parts]}
        return {"anyOf": parts}

    def part(self):
        schema = self.atom()
        while self.take("["):
            least = self.number()
            most = self.number() if self.take("..") else least
            self.need("]")
            limits = {"minItems": least, "maxItems": most, "uniqueItems": self.take("unique") and True}
            schema = {"type": "array", "items": schema} | {
                name: limit for name, limit in limits.items() if limit is not None}
        return schema

    def atom(self):
        token = self.rest.pop(0)
        if token == "(":
            return self.listed(self.union, ")")[0]
        if token == "[":
            items = self.listed(self.union, "]")
            return {"type": "array", "prefixItems": items, "minItems": len(items), "maxItems": len(items)}
        if token == "{":
            entries = self.listed(self.entry, "}")
            return {"type": "object", "properties": {name: schema for name, _, schema in entries},
                    "required": [name for name, optional, _ in entries if not optional],
                    "additionalProperties": False}
        if token == "map" and self.take("<"):
            return {"type": "object", "additionalProperties": self.listed(self.union, ">")[0]}
        if token[0] == '"' or token[0].isdigit():
            return {"const": json.loads(token)}
        return self.named(token)

    def entry(self):
        name, optional = json.loads(self.rest.pop(0)), self.take("?")
        self.need(":")
        return name, optional, self.union()

    def named(self, name):
        """A builtin type with its bounds or its pattern, else a reference."""
        schema = dict(BUILTIN.get(name) or {"$ref": f"#/$defs/{name}"})
        while name in ("number", "integer") and (sign := self.take(*LIMITS)):
            schema[LIMITS[sign]] = self.number()
        if self.rest and self.rest[0][0] == "/":
            schema["pattern"] = self.rest.pop(0)[1:-1]
        return schema


class Fields:
    """Everything that docs/fields declares."""

    def __init__(self):
        self.documents = {}  # file: (title, type)
        self.aliases = {}  # name: (type, meaning)
        # name: (meaning, at least one field, lines). A line is a string (a splice or a rule), or
        # (name, optional, text of the type, type, meaning).
        self.objects = {}
        for path in sorted((ROOT / "docs/fields").glob("*.fields")):
            text = re.sub(r"\n {4,}", " ", path.read_text(encoding="utf-8"))
            for line in filter(None, text.split("\n")):
                if line.startswith(("  ..", "  if ")):
                    lines.append(line.strip())
                elif found := FIELD.fullmatch(line):
                    lines.append((found[1], bool(found[2]), found[3], Type(found[3]), found[4]))
                elif found := DOCUMENT.fullmatch(line):
                    self.documents[path.stem] = (found[1], Type(found[2]))
                elif found := ALIAS.fullmatch(line):
                    self.aliases[found[1]] = (Type(found[2]), found[3])
                elif found := OBJECT.fullmatch(line):
                    lines = []
                    self.objects[found[1]] = (found[3], bool(found[2]), lines)
                elif not line.startswith("#"):
                    raise SystemExit(f"{path.name}: cannot read {line!r}")

    def fields(self, name):
        """The fields of an object, those of other objects that it includes among them."""
        for line in self.objects[name][2]:
            if isinstance(line, tuple):
                yield line
            elif line.startswith(".."):
                yield from self.fields(line[2:])

    def needed(self, name):
        """JSON schema's dependentRequired: fields that others bring with them."""
        rules = [line[3:].split(": ") for line in self.objects[name][2] if line[:3] == "if "]
        return {each: [other for other in needs.split() if other != each]
                for given, needs in rules for each in given.split()}

    def objects_in(self, schema):
        """The objects that a schema refers to, in their order."""
        return list(filter(self.objects.get, references(schema)))


def plain(meaning):
    """A meaning with the paths of pages in place of links."""
    return LINK.sub(lambda link: f"docs/{link[2]}" if link[1].endswith(".md")
                    else f"{link[1]} (docs/{link[2]})", meaning)


def references(schema):
    """The names of the types and objects that a schema refers to, in their order."""
    return list(dict.fromkeys(re.findall(r"#/\$defs/(\w+)", json.dumps(schema))))


def definition(declared, name):
    """The schema of an object or of a named type."""
    if alias := declared.aliases.get(name):
        return {**alias[0].schema, "description": plain(alias[1])}
    if name not in declared.objects:
        raise SystemExit(f"no type and no object is called {name}")
    meaning, any_field, _ = declared.objects[name]
    fields = list(declared.fields(name))
    schema = {"type": "object", "description": plain(meaning),
              "properties": {field: {**of.schema, "description": plain(what)}
                             for field, _, _, of, what in fields},
              "required": [field for field, optional, *_ in fields if not optional]}
    if needed := declared.needed(name):
        schema["dependentRequired"] = needed
    return schema | ({"minProperties": 1} if any_field else {}) | {"additionalProperties": False}


def schema_text(declared, name):
    """The JSON schema of a document."""
    title, of = declared.documents[name]
    definitions, left = {}, references(of.schema)
    while left:
        each = left.pop()
        if each not in definitions:
            definitions[each] = definition(declared, each)
            left += references(definitions[each])
    whole = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": title, **of.schema,
             "$defs": dict(sorted(definitions.items()))}
    return json_text(whole, ["$defs", None, "properties"]) + "\n"


def json_text(value, opened, depth=1):
    """JSON with a line for each key, of the whole and along the keys `opened` (None: any)."""
    lines = [f"{' ' * depth}{json.dumps(key)}: " + (
        json_text(of, opened[1:], depth + 1) if opened and opened[0] in (key, None)
        else json.dumps(of)) for key, of in value.items()]
    return "{\n" + ",\n".join(lines) + "\n" + " " * (depth - 1) + "}"


class Classes:
    """The text of python/halfscope/_fields.py."""

    def __init__(self, declared):
        self.declared = declared
        self.made = {}  # name: text

    def text(self):
        for document in RETURNED:
            self.add(self.declared.objects_in(self.declared.documents[document][1].schema))
        return HEADER + "".join(self.made.values())

    def add(self, names):
        """A class for the first object, with the fields of all of them, below those that it holds."""
        each = [list(self.declared.fields(name)) for name in names]
        everywhere = set.intersection(*({f for f, optional, *_ in fields if not optional} for fields in each))
        body, nested = "", ""
        for field, _, _, of, meaning in {line[0]: line for fields in each for line in fields}.values():
            for inner in self.declared.objects_in(of.schema):
                if inner not in self.made:
                    self.add([inner])
                nested += f"        {field!r}: {inner},\n"
            body += self.attribute(field, self.name_of(of.schema), field not in everywhere, meaning)
        doc = quoted(self.declared.objects[names[0]][0])
        end = f"    _nested = {{\n{nested}    }}\n" if nested else ""
        self.made[names[0]] = f"\n\nclass {names[0]}(Record):\n{doc}\n    __slots__ = ()\n{body}{end}"

    def attribute(self, field, said, optional, meaning):
        """An attribute with its type, and its meaning below it, which editors show."""
        if optional and "None" not in said.split(" | "):
            said += " | None"
        word, hides = keyword.iskeyword(field), hasattr(dict, field)  # the attribute from_; a method
        own = f" = field({field!r})" if word or hides else ""
        own += "  # type: ignore[assignment]" if hides else ""
        return f"    {field}{'_' * word}: {said}{own}\n" + quoted(meaning)

    def name_of(self, schema):
        """The Python type of values that a schema allows."""
        if "$ref" in schema:
            name = schema["$ref"].split("/")[-1]
            alias = self.declared.aliases.get(name)
            return self.name_of(alias[0].schema) if alias else name
        if "anyOf" in schema:
            return " | ".join(dict.fromkeys(
                word for each in schema["anyOf"] for word in self.name_of(each).split(" | ")))
        if "const" in schema or "enum" in schema:
            values = schema.get("enum", [schema.get("const")])
            return "bool" if values[0] is True else f"Literal[{', '.join(map(repr, values))}]"
        if schema["type"] == "array":
            item = self.name_of({"anyOf": schema.get("prefixItems") or [schema["items"]]})
            pair = schema.get("minItems") == schema.get("maxItems") == 2
            return "Bounds" if pair and item == "float" else f"list[{item}]"
        if schema["type"] == "object":
            values = schema.get("properties", {"": schema["additionalProperties"]}).values()
            return f"dict[str, {' | '.join(dict.fromkeys(map(self.name_of, values)))}]"
        return PYTHON[schema["type"]]


def quoted(meaning):
    """A docstring of lines of 100 characters."""
    return textwrap.fill(f'"""{plain(meaning)}"""', 100, initial_indent=" " * 4, subsequent_indent=" " * 4,
                         break_long_words=False, break_on_hyphens=False) + "\n"


class Tables:
    """The tables of fields in the pages of docs. An object has one table in all of them."""

    def __init__(self, declared):
        self.declared = declared
        self.pages = {path: path.read_text(encoding="utf-8") for path in sorted((ROOT / "docs").glob("*.md"))}
        self.placed = {name for text in self.pages.values() for _, name, _ in TABLE.findall(text)}

    def texts(self):
        for path, text in self.pages.items():
            self.shown = set(self.placed)
            yield path, TABLE.sub(lambda found: found[1] + self.table(found[2], path.name) + found[3], text)

    def table(self, name, page):
        rows = "".join(f"| {' | '.join(cells)} |\n" for cells in self.rows(name, ""))
        text = f"{self.declared.objects[name][0]}\n\n| field | type | meaning |\n|---|---|---|\n{rows}"
        return text.replace(f"]({page}#", "](#")

    def rows(self, name, prefix):
        """The cells of an object's fields. Objects without a table follow the field that holds them.

        A splice that a table has already is one row.
        """
        for line in self.declared.objects[name][2]:
            if isinstance(line, tuple):
                field, _, kind, of, meaning = line
                yield f"`{prefix}{field}`", f"`{self.kind(kind, meaning)}`", meaning.replace("|", "\\|")
                for inner in self.declared.objects_in(of.schema):
                    if inner not in self.shown:
                        self.shown.add(inner)
                        yield from self.rows(inner, f"{prefix}{field}.")
            elif line.startswith("..") and line[2:] not in self.shown:
                self.shown.add(line[2:])
                yield from self.rows(line[2:], prefix)
            elif line.startswith(".."):
                first, *_, last = (field for field, *_ in self.declared.fields(line[2:]))
                meaning = self.declared.objects[line[2:]][0]
                yield f"`{prefix}{first}` to `{prefix}{last}`", f"`{line[2:]}`", meaning

    def kind(self, text, meaning):
        """The type as tables show it. Words that the meaning explains are not repeated."""
        words = re.findall(r'"([^"]*)"', text)
        if words and all(f"`{word}`" in meaning for word in words):
            text = re.sub(r'"[^"]*"( \| "[^"]*")*', "word", text)
        return text.replace(" | ", " or ")


def main():
    declared = Fields()
    texts = {ROOT / f"docs/schema/{name}.schema.json": schema_text(declared, name)
             for name in declared.documents}
    texts |= {ROOT / "python/halfscope/_fields.py": Classes(declared).text(), **dict(Tables(declared).texts())}
    differ = {path: text for path, text in texts.items()
              if not path.exists() or path.read_text(encoding="utf-8") != text}
    if differ and "--check" in sys.argv[1:]:
        names = ", ".join(str(path.relative_to(ROOT)) for path in differ)
        raise SystemExit(f"{names}: not what docs/fields says. Run tools/json_fields.py")
    for path, text in differ.items():
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
