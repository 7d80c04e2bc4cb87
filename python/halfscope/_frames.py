# SPDX-License-Identifier: Apache-2.0
"""Lists of records as columns, for pandas and Arrow.

The columns depend only on the record's class, not on the log, so that one script works with all
logs. A number that may be known only between bounds has three columns: NAME (None unless it is
exact), NAME_low and NAME_high.
"""

from halfscope._parts import part
from halfscope._records import Record

_SCALARS = {"int", "float", "bool", "str"}


def _words(said):
    """Returns the alternatives in a type's text, without None. A Literal counts as str."""
    words, depth = [""], 0
    for letter in said.replace(" | ", "|"):
        depth += {"[": 1, "]": -1}.get(letter, 0)
        if letter == "|" and depth == 0:
            words.append("")
        else:
            words[-1] += letter
    words = ["str" if word.startswith("Literal[") else word for word in words if word != "None"]
    return list(dict.fromkeys(words))


def _kind(said):
    """Returns the kind of column for a type: "int", "float", "bool", "str", "list KIND", "bounds
    int" or "bounds float". None if a column cannot hold the type."""
    words = _words(said)
    scalars = [word for word in words if word in _SCALARS]
    lists = [word for word in words if word.startswith("list[")]
    if "Bounds" in words or scalars and lists:
        return "bounds " + (scalars or ["float"])[0]
    if lists and len(words) == 1:
        of = _words(lists[0][len("list["):-1])
        return f"list {of[0]}" if of and of[0] in _SCALARS else None
    if len(scalars) > 1:
        return "float" if set(scalars) == {"int", "float"} else "str"
    return scalars[0] if scalars and len(words) == 1 else None


def _add(columns, name, kind, value):
    columns.setdefault(name, (kind, []))[1].append(value)


def _add_record(columns, record, fields, nested, before=""):
    for field, said in fields.items():
        kind, name = _kind(said), before + field
        value = record.get(field) if record is not None else None
        if kind and kind.startswith("bounds "):
            low, high = value if isinstance(value, list) else (value, value)
            exact = low if low == high else None
            for ending, each in (("", exact), ("_low", low), ("_high", high)):
                _add(columns, name + ending, kind.split()[1], each)
        elif kind:
            _add(columns, name, kind, value)
        elif nested.get(field) and _words(said) == [nested[field].__name__]:
            of = nested[field]
            _add_record(columns, value, of._fields, of._nested, name + "_")


def columns_of(records, cls):
    """Returns {column: (kind, values)} for records of a class."""
    columns = {}
    _add_record(columns, {}, cls._fields, cls._nested)  # adds all columns, with or without records
    for _, values in columns.values():
        values.clear()
    for record in records:
        _add_record(columns, record, cls._fields, cls._nested)
    return columns


def to_pandas(columns):
    """Returns a DataFrame. Integers are Int64 and bools boolean, types with missing values."""
    pandas = part("pandas", "to_pandas()", "pandas")
    types = {"int": "Int64", "float": "float64", "bool": "boolean", "str": "object"}
    return pandas.DataFrame({name: pandas.Series(values, dtype=types.get(kind, "object"))
                             for name, (kind, values) in columns.items()})


def to_arrow(columns):
    """Returns a pyarrow.Table."""
    pyarrow = part("pyarrow", "to_arrow()", "pyarrow")
    types = {"int": pyarrow.int64(), "float": pyarrow.float64(), "bool": pyarrow.bool_(),
             "str": pyarrow.string()}

    def type_of(kind):
        return pyarrow.list_(types[kind.split()[1]]) if kind.startswith("list ") else types[kind]

    def as_said(kind, values):
        return [None if v is None else str(v) for v in values] if kind == "str" else values

    return pyarrow.table({name: pyarrow.array(as_said(kind, values), type_of(kind))
                          for name, (kind, values) in columns.items()})


def with_keys(records, keys, cls, name):
    """Returns (records, class) with key columns before the fields of `cls`. `records` is a list of
    (values of the keys, record); `keys` is {name: type}."""
    fields = {**keys, **cls._fields}
    made = type(name, (Record,), {"__annotations__": fields, "_nested": cls._nested})
    return [{**dict(zip(keys, values)), **record} for values, record in records], made
