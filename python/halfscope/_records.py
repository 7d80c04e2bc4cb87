# SPDX-License-Identifier: Apache-2.0
"""Objects of a result: mappings whose fields, as in the JSON, are attributes too."""

import keyword

Bounds = list[float]  # low and high


def _field(attribute):
    """Returns the field of an attribute: `from` for from_, because `from` is a keyword."""
    return attribute[:-1] if keyword.iskeyword(attribute[:-1]) else attribute


def field(name):
    """Returns a property for a field whose name is a method of dict or a keyword."""
    return property(lambda self: self.get(name))


def _short(value):
    if isinstance(value, str):
        return repr(value if len(value) <= 40 else value[:39] + "\u2026")
    if isinstance(value, (list, tuple)):
        return repr(value) if len(value) <= 2 and not any(
            isinstance(each, (dict, list)) for each in value) else f"<{len(value)} items>"
    if isinstance(value, dict):
        return f"<{len(value)} fields>"
    return repr(value)


class Record(dict):
    """A mapping whose fields (docs/json.md) are attributes too.

    A documented field that the log cannot answer is None as an attribute and missing as a key.
    """

    __slots__ = ()
    _fields = {}  # {name of a field: type}
    _nested = {}  # {name of a field: class of the objects in it}

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        own = {_field(name): said for name, said in getattr(cls, "__annotations__", {}).items()}
        cls._fields = {**cls._fields, **own}

    def __getattr__(self, name):
        try:
            return self[name]
        except KeyError:
            if name in self._fields:
                return None
        raise AttributeError(f"{type(self).__name__} has no field {name!r}; it has "
                             + ", ".join(self._fields or self))

    def __dir__(self):
        return sorted({*super().__dir__(), *self._fields, *self})

    def __repr__(self):
        shown = [f"{name}={_short(value)}" for name, value in list(self.items())[:4]]
        more = [f"{len(self) - 4} more fields"] if len(self) > 4 else []
        return f"{type(self).__name__}({', '.join(shown + more)})"
