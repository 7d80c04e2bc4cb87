# SPDX-License-Identifier: Apache-2.0
"""What analyze, recommend, compare, policies and report return."""

import os
import re
from pathlib import Path

from halfscope import _frames
from halfscope._fields import (Answer, ByScale, ComparisonFields, FindingsFields, PerStep, PolicyTrace,
                               RecommendationFields)
from halfscope._fields import Finding, TensorFindings
from halfscope._records import Record


class Result:
    """What all results have: tables, charts, a page, and a display of their own in Jupyter."""

    _shown_first = ()  # charts of the display, by name
    _pandas_table = None  # the table that to_pandas() gives without a name

    def _judged(self):
        """What the library found; a copy or an unpickled result has the fields alone."""
        found = getattr(self, "_found", None)
        if found is None:
            raise RuntimeError(f"this {type(self).__name__} is a copy that has its fields alone: charts, "
                               "pages and the display need the result of the call itself")
        return found

    def _keep(self, found, again=None):
        self._found, self._again, self._drawn, self._said = found, again, None, None
        return self

    def _shown(self):
        if self._said is None:
            self._said = self._judged().shown()
        return self._said

    # --- tables
    def _tables(self):
        """{name: (records, class)}, made when asked for"""
        return {}

    @property
    def tables(self):
        """Names of the tables that to_pandas() and to_arrow() give, the usual one first."""
        return list(self._tables())

    def _columns(self, table):
        tables = self._tables()
        name = table or self._pandas_table
        if name not in tables:
            raise KeyError(f"no table is called {name!r}; there are {', '.join(tables)}")
        return _frames.columns_of(*tables[name]())

    def to_pandas(self, table=None):
        """One table as a pandas.DataFrame. table: one of `tables`; by default the first.

        Columns are named as the fields of docs/json.md, those of an object in a field FIELD_NAME.
        The columns of a table do not depend on the log: what it cannot answer is missing (NA). A
        count that may be known between bounds only is three columns: NAME (NA where it is not
        exact), NAME_low and NAME_high. Needs pandas.
        """
        return _frames.to_pandas(self._columns(table))

    def to_arrow(self, table=None):
        """The same as a pyarrow.Table. Needs pyarrow."""
        return _frames.to_arrow(self._columns(table))

    def __arrow_c_stream__(self, requested_schema=None):
        """The first table, for every package that takes Arrow's PyCapsule interface."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    # --- charts
    def _charts(self):
        from halfscope._charts import Chart, Charts

        found = self._judged()
        of_tensor = getattr(found, "charts_of_tensor", None)
        return Charts(map(Chart, found.charts()), of_tensor)

    @property
    def charts(self):
        """The charts of the page by name: `charts["gradients"].altair()`, `.save_svg("x.svg")`.

        `charts.of(TENSOR)` has those of one tensor, by its name in the log.
        """
        if self._drawn is None:
            self._judged()
            self._drawn = self._charts()
        return self._drawn

    def _chart(self, name):
        if name is not None:
            return self.charts[name]
        chart = self.charts.first(self._shown_first)
        if chart is None:
            raise ValueError("there is nothing to draw: the log has no finite nonzero values")
        return chart

    def save_svg(self, path, chart=None, **options):
        """Writes a chart as SVG. chart: one of `charts`; by default the one that the display shows
        first. options: axis="log" for logarithmic counts, width in pixels. Needs vl-convert-python."""
        self._chart(chart).save_svg(path, **options)

    def save_png(self, path, chart=None, **options):
        """Writes a chart as PNG; options as for save_svg(), and scale: pixels of the picture for one
        of the chart, by default 2. Needs vl-convert-python."""
        self._chart(chart).save_png(path, **options)

    # --- pages
    def save_html(self, path, title=None):
        """Writes the page of `halfscope report`: one file that needs no network.

        The logs are read again, since a page has more than one answer. title: by default the logs'
        names. Raises BadInput where the page cannot be written.
        """
        self._judged()
        self._again().save_html(path, title)

    # --- display
    def _display_charts(self):
        charts = self.charts
        return [charts[name] for name in self._shown_first if name in charts]

    def _repr_html_(self):
        from halfscope._display import html_of

        if getattr(self, "_found", None) is None:
            return None
        return html_of(self._shown(), self._display_charts())

    def __str__(self):
        from halfscope._display import text_of

        return text_of(self._shown()) if getattr(self, "_found", None) else repr(self)

    def __reduce__(self):
        return type(self), (self._plain(),)


def _records(field, cls):
    """A table of a list of records; they may be absent."""
    return lambda self: (self.get(field) or [], cls._nested[field])


def _record_tables(self):
    """Lists of records that this result has, by field."""
    def table(field):
        return lambda: (self.get(field) or [], self._nested[field])

    return {field: table(field) for field, of in self._nested.items()
            if isinstance(self.get(field), list) and isinstance(of, type)}


class Findings(Result, FindingsFields):
    """What rounding to a format does to every tensor of one or several logs: docs/json.md, analyze.

    Tables: `tensors`; `per_step`, `by_scale` and `binades` of every tensor; and those lists of
    objects that the log has.
    """

    _shown_first = ("gradients",)
    _pandas_table = "tensors"

    def _plain(self):
        return dict(self)

    def __repr__(self):
        gradients = sum("grad" in tensor["role"] for tensor in self["tensors"])
        return (f"<Findings: {len(self['tensors'])} tensors, {gradients} of gradients, of "
                f"{_named(self['logs'])}, against {self['format']}>")

    def tensor(self, name):
        """The entry of a tensor by its name in the log; of several logs, that of the first."""
        for tensor in self["tensors"]:
            if tensor["name"] == name:
                return tensor
        raise KeyError(f"no tensor is called {name!r}")

    def _each(self, field, cls):
        def rows():
            records = [((tensor["log"], tensor["name"]), entry) for tensor in self["tensors"]
                       for entry in tensor[field]]
            return _frames.with_keys(records, {"log": "str", "name": "str"}, cls, "Row")
        return rows

    def _binades(self):
        rows = [{"log": t["log"], "name": t["name"], "exponent": e, "count": count}
                for t in self["tensors"] for e, count in t["binades"]]
        return rows, _columns(log="str", name="str", exponent="int", count="int | list[int]")

    def _tables(self):
        lists = _record_tables(self)
        return {"tensors": lists.pop("tensors"), "per_step": self._each("per_step", PerStep),
                "by_scale": self._each("by_scale", ByScale), "binades": self._binades, **lists}


def _columns(**fields):
    return type("Row", (Record,), {"__annotations__": fields})


def _named(logs):
    names = [str(log) for log in logs]
    return names[0] if len(names) == 1 else f"{len(names)} logs"


def _escaped(text):
    return re.sub(r"([\\`*_\[\]<>|#~&])", r"\\\1", text)


class Recommendation(Result, RecommendationFields):
    """The loss scale for a log, and what it rests on: docs/json.md, recommend.

    Printed, it is the answer and all findings. Tables: `findings`, and those lists of objects that
    the log has, such as `headroom`, `scales`, `overflow_events`.
    """

    _shown_first = ("gradients", "scales/gradients", "timeline")
    _pandas_table = "findings"

    def _plain(self):
        return dict(self)

    def __repr__(self):
        scale = self.get("static_scale")
        said = "no static loss scale" if scale is None else f"static loss scale {scale:g}"
        return (f"<Recommendation: {said}, {self['format']}, "
                f"{len(self['answer']['findings'])} findings, of {_named(self['logs'])}>")

    def _tables(self):
        return {"findings": lambda: (self["answer"]["findings"], Finding), **_record_tables(self)}

    # The same of an unpickled one: the sentences are among the fields.
    def _first(self):
        """The headline with its action, and the sentence on the loss scale."""
        answer = self["answer"]
        lead = " ".join(filter(None, (answer["headline"], answer.get("action"))))
        return [lead] if answer["headline"] == answer["scale"] else [lead, answer["scale"]]

    def _findings(self):
        answer = self["answer"]
        found = [" ".join(filter(None, (finding["title"], finding.get("action"))))
                 for finding in answer["findings"]]
        return ([answer["clear"]] if "clear" in answer else []) + found

    def __str__(self):
        lines = self["answer"].get("paste")
        paste = ["", *(f"  {line}" for line in lines.splitlines()), ""] if lines else []
        return "\n".join([*self._first(), *paste, *(f"* {said}" for said in self._findings())])

    def _repr_markdown_(self):
        headline, *rest = self._first()
        lines = self["answer"].get("paste")
        paste = [f"```python\n{lines}\n```"] if lines else []
        said = "\n".join(f"* {_escaped(text)}" for text in self._findings())
        return "\n\n".join([f"**{_escaped(headline)}**", *map(_escaped, rest), *paste, said])


class Comparison(Result, ComparisonFields):
    """Two runs side by side: docs/compare.md. Tables: `tensors`, `loss`, `scales`."""

    _shown_first = ("loss", "scales")
    _pandas_table = "tensors"

    def _plain(self):
        return dict(self)

    def __repr__(self):
        summary = self["summary"]
        return (f"<Comparison: {len(self['tensors'])} tensors of {self['logs'][0]} and "
                f"{self['logs'][1]}; in the second underflow: {summary['underflow']}, overflow: "
                f"{summary['overflow']}>")

    def _series(self, field, value):
        def rows():
            found = self.get(field) or {}
            return ([{"run": run, "step": step, value: each} for run in ("a", "b")
                     for step, each in found.get(run) or []],
                    _columns(run="str", step="int", **{value: "float"}))
        return rows

    def _tables(self):
        return {"tensors": _record_tables(self)["tensors"], "loss": self._series("loss", "loss"),
                "scales": self._series("scales", "loss_scale")}

    def _charts(self):
        from halfscope._charts import Chart, Charts
        from halfscope._compare_rows import charts_of, tensor_chart

        return Charts([Chart(told, "compare") for told in charts_of(self)],
                      lambda tensor: tensor_chart(self, tensor))

    def save_html(self, path, title=None):
        """Writes the page of `halfscope compare A B --out`: one file that needs no network."""
        self._judged().write_page(title or "Two runs compared", os.fspath(path))


class Policies(Result, list):
    """Policies replayed over a run, a PolicyTrace each: docs/json.md, policies.

    Tables: `policies`, a row each; `steps`, a row a policy and step.
    """

    _shown_first = ("policy-scales", "policy-flushed")
    _pandas_table = "policies"

    def _plain(self):
        return list(self)

    def __repr__(self):
        logs = sorted({trace.get("log", "a series") for trace in self})
        return f"<Policies: {len(self)} replayed over {_named(logs)}>"

    def named(self, policy):
        """The trace of a policy, by its name: "torch", or "recorded" for the run itself."""
        for trace in self:
            if trace["policy"] == policy:
                return trace
        raise KeyError(f"no policy is called {policy!r}; there are "
                       + ", ".join(trace["policy"] for trace in self))

    def _rows(self):
        counted = ("skipped", "overflow", "unknown", "applied_nonfinite")
        rows = [{**trace, **{f"{name}_steps": len(trace[name]) for name in counted if name in trace}}
                for trace in self]
        fields = {name: said for name, said in PolicyTrace._fields.items()
                  if name not in (*counted, "scale", "attempts")}
        return rows, type("Row", (Record,), {
            "__annotations__": {**fields, **{f"{name}_steps": "int" for name in counted}},
            "_nested": PolicyTrace._nested})

    def _steps(self):
        rows = [{"policy": t["policy"], "log": t.get("log"), "step": step, "scale": scale,
                 "attempts": attempts, "skipped": step in skipped}
                for t in self if "scale" in t
                for skipped in [frozenset(t["skipped"])]
                for step, (scale, attempts) in enumerate(zip(t["scale"], t["attempts"]),
                                                         t.get("first_step", 0))]
        return rows, _columns(policy="str", log="str", step="int", scale="float", attempts="int",
                              skipped="bool")

    def _tables(self):
        return {"policies": self._rows, "steps": self._steps}


class Report(Result):
    """Everything on one page: `halfscope report`.

    recommendation: a Recommendation; analysis: Findings; policies: those replayed, where the log
    can be; title. Tables: those of the three.
    """

    _shown_first = ("gradients", "scales/gradients", "timeline", "update-ratios", "outcomes", "rooms",
                    "policy-scales", "policy-flushed", "fits")
    _pandas_table = "tensors"

    def __init__(self, found, title, again=None):
        self.title = title
        self._keep(found, again)
        self._parts = {}

    def _part(self, name, made):
        if name not in self._parts:
            self._parts[name] = made()._keep(self._judged(), lambda: self)
        return self._parts[name]

    @property
    def recommendation(self):
        """The fields of `halfscope recommend --json`."""
        return self._part("recommendation", lambda: self._judged().recommendation(Recommendation))

    @property
    def analysis(self):
        """The fields of `halfscope analyze --formats --what-if --json`."""
        return self._part("analysis", lambda: self._judged().analysis(Findings))

    @property
    def policies(self):
        """The fields of `halfscope policies --json`; empty where the log cannot be replayed."""
        return self._part("policies", lambda: Policies(self._judged().traces(PolicyTrace)))

    def __repr__(self):
        return f"<Report: {self.title}>"

    def __reduce__(self):
        raise TypeError("a Report is not pickled: pickle its recommendation, analysis or policies, or "
                        "save_html()")

    def _tables(self):
        return {**self.analysis._tables(), **{
            name: table for part in (self.recommendation, self.policies)
            for name, table in part._tables().items()}}

    def save_html(self, path, title=None):
        """Writes the page: one file that needs no network. Raises BadInput."""
        self._judged().write_page(title or self.title, os.fspath(path))

    def markdown(self):
        """The answer and its tables as Markdown, as `halfscope report --out FILE.md` writes it."""
        return self._judged().markdown(self.title)

    def save_markdown(self, path):
        """Writes markdown() to a file."""
        Path(path).write_text(self.markdown(), encoding="utf-8")


__all__ = ["Answer", "Comparison", "Findings", "Policies", "PolicyTrace", "Recommendation", "Report",
           "TensorFindings"]
