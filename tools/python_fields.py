# SPDX-License-Identifier: Apache-2.0
"""Writes python/halfscope/_fields.py: a class for every object in the JSON, from docs/schema.

python_fields.py           writes the file
python_fields.py --check   exit code 1 if the file does not agree with the schemas
"""

import json
import keyword
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
OUT = ROOT / "python/halfscope/_fields.py"
# {schema: class of its whole object}, and {(schema, field): class} where the name of the field does
# not determine the name of the class.
WHOLE = {"analyze": "FindingsFields", "recommend": "RecommendationFields",
         "compare": "ComparisonFields", "policies": "PolicyTrace",
         "reduce": "Reduction"}
CALLED = {("analyze", "tensors"): "TensorFindings", ("compare", "a"): "UpdateSide", ("compare", "b"): "UpdateSide",
          ("analyze", "classes"): "FormatClasses", ("analyze", "rank"): "Ranks",
          ("analyze", "by_rank"): "RankValues", ("analyze", "ranks_compared"): "RankComparison",
          ("compare", "operation_operation"): "OperationKind",
          ("compare", "sums"): "ComparedSums", ("compare", "by_tensor"): "OrderVerdict",
          ("compare", "tensors"): "ComparedTensor"}
SIMPLE = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}
HEADER = '''# SPDX-License-Identifier: Apache-2.0
"""The objects in results, and their fields (docs/json.md). Written by tools/python_fields.py.

A field that a log cannot answer is None as an attribute, and no key of the mapping.
"""

from __future__ import annotations

from typing import Literal

from halfscope._records import Bounds, Record, field
'''


def camel(field):
    return "".join(word.capitalize() for word in field.split("_"))


def singular(field):
    if field.endswith("ies"):
        return field[:-3] + "y"
    return field[:-1] if field.endswith("s") and not field.endswith("ss") else field


class Writer:
    def __init__(self):
        self.classes = {}  # {name: (fields, nested)}, in order
        self.docs = {}

    def class_of(self, part, name, schema, parent="", inside=None):
        """Returns the name of a class with these properties; an existing one if possible."""
        required = set(part.get("required", ()))
        fields, nested = {}, {}
        for field, of in part["properties"].items():
            said, inner = self.type_of(of, field, name, schema)
            optional = field not in required and "None" not in said.split(" | ")
            fields[field] = said + (" | None" if optional else "")
            if inner:
                nested[field] = inner
        for candidate in (name, parent + name, schema["name"].capitalize() + name):
            if candidate not in self.classes:
                self.classes[candidate] = (fields, nested)
                what = f"field `{inside}`" if inside else "fields"
                self.docs[candidate] = f"The {what} of {schema['title']}: docs/json.md."
            if self.classes[candidate] == (fields, nested):
                return candidate
        raise SystemExit(f"{schema['name']}: two classes {name} with other fields")

    def type_of(self, part, field, parent, schema):
        """Returns (type as text, name of the class of objects in it or None)."""
        if "$ref" in part:
            name = part["$ref"].removeprefix("#/$defs/")
            return self.type_of(schema["$defs"][name], name, parent, schema)
        if "properties" in part and not all(map(str.isidentifier, part["properties"])):
            values = [self.type_of(of, field, parent, schema)[0] for of in part["properties"].values()]
            return f"dict[str, {' | '.join(dict.fromkeys(values))}]", None  # keys are numbers
        if "properties" in part:
            name = CALLED.get((schema["name"], field)) or camel(singular(field))
            if name in WHOLE.values() or name == parent:
                name = parent + name
            name = self.class_of(part, name, schema, parent, field)
            return name, name
        for key in ("oneOf", "anyOf"):
            if key in part:
                found = [self.type_of(each, field, parent, schema) for each in part[key]]
                said = [word for text, _ in found for word in text.split(" | ")]
                return " | ".join(dict.fromkeys(said)), next((c for _, c in found if c), None)
        if "const" in part:
            return ("bool" if part["const"] is True else f"Literal[{part['const']!r}]"), None
        if "enum" in part:
            return f"Literal[{', '.join(map(repr, part['enum']))}]", None
        return self.plain_type(part, field, parent, schema)

    def plain_type(self, part, field, parent, schema):
        kinds = part.get("type", [])
        kinds = [kinds] if isinstance(kinds, str) else kinds
        said, inner = [], None
        for kind in kinds:
            if kind == "array":
                items = part.get("items") or {"anyOf": part.get("prefixItems", [{}])}
                text, inner = self.type_of(items, field, parent, schema)
                pair = part.get("minItems") == part.get("maxItems") == 2
                said.append("Bounds" if pair and text == "float" else f"list[{text}]")
            elif kind == "object":
                more = part.get("additionalProperties")
                of = self.type_of(more, field, parent, schema)[0] if more else "Any"
                said.append(f"dict[str, {of}]")
            else:
                said.append(SIMPLE[kind])
        return " | ".join(said) or "Any", inner


def text_of(name, doc, fields, nested):
    out = f'\n\nclass {name}(Record):\n    """{doc}"""\n\n    __slots__ = ()\n'
    for field, said in fields.items():
        own = ""
        if keyword.iskeyword(field):  # the attribute gets an underscore, as from_
            own = f" = field({field!r})"
        elif hasattr(dict, field):  # the field hides a method of dict
            own = f" = field({field!r})  # type: ignore[assignment]"
        out += f"    {field}{'_' if keyword.iskeyword(field) else ''}: {said}{own}\n"
    if nested:
        pairs = "".join(f"        {field!r}: {of},\n" for field, of in nested.items())
        out += f"    _nested = {{\n{pairs}    }}\n"
    return out


def merged(schemas):
    """Returns a schema with the properties of all schemas; required are those that all require."""
    return {"properties": {k: v for s in schemas for k, v in s["properties"].items()},
            "required": set.intersection(*(set(s["required"]) for s in schemas))}


def written():
    writer = Writer()
    for name, whole in WHOLE.items():
        schema = json.loads((ROOT / f"docs/schema/{name}.schema.json").read_text(encoding="utf-8"))
        schema["name"] = name
        part = schema
        if schema["type"] == "array":
            part = schema["items"]
            if "oneOf" in part:
                part = merged([schema["$defs"][each["$ref"].split("/")[-1]] for each in part["oneOf"]])
        writer.class_of(part, whole, schema)
    # A class must follow the classes that it uses.
    names, order = list(writer.classes), []

    def place(name):
        for of in writer.classes[name][1].values():
            place(of)
        if name not in order:
            order.append(name)

    for name in names:
        place(name)
    return HEADER + "".join(text_of(name, writer.docs[name], *writer.classes[name]) for name in order)


def main():
    text = written()
    if "--check" in sys.argv[1:]:
        if OUT.read_text(encoding="utf-8") != text:
            raise SystemExit(f"{OUT.relative_to(ROOT)} is not what docs/schema says: run "
                             "tools/python_fields.py")
    else:
        OUT.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
