# SPDX-License-Identifier: Apache-2.0
"""The results of analyze, recommend, compare, reduce, policies and report."""

import difflib
import os
import re
from pathlib import Path

from halfscope import _frames
from halfscope._arguments import described, require_ending
from halfscope._fields import (BlockFit, ByScale, ComparisonFields, Finding, FindingsFields, FormatFit,
                               PerStep, PolicyTrace, RecipeFit, RecommendationFields, Reduction)
from halfscope._records import Record
from halfscope._result import Result, named, record_tables, row_class


FORMATS = {"formats": FormatFit, "mx_formats": BlockFit, "recipes": RecipeFit}


class Findings(Result, FindingsFields):
    """The effect of rounding to a format on every tensor of one or more logs: docs/json.md,
    analyze.

    Tables: `tensors`; `per_step`, `by_scale` and `binades` of every tensor, with formats=True also
    `formats` and `mx_formats`, with recipes also `recipes`; and each field of the result that is a
    list of objects.
    """

    _shown_first = ("gradients",)
    _pandas_table = "tensors"

    def _plain(self):
        return dict(self)

    def __repr__(self):
        gradients = sum("grad" in tensor["role"] for tensor in self["tensors"])
        return (f"<Findings: {len(self['tensors'])} tensors, {gradients} of gradients, of "
                f"{named(self['logs'])}, against {self['format']}>")

    def tensor(self, name):
        """Returns the entry of a tensor by its name; if several logs have the tensor, the first."""
        for tensor in self["tensors"]:
            if tensor["name"] == name:
                return tensor
        near = difflib.get_close_matches(str(name), [tensor["name"] for tensor in self["tensors"]])
        hint = f"; did you mean {' or '.join(map(repr, near))}?" if near else ""
        raise KeyError(f"no tensor is called {described(name)}{hint}")

    def _each(self, field, cls):
        def rows():
            records = [((tensor["log"], tensor["name"]), entry) for tensor in self["tensors"]
                       for entry in tensor.get(field) or []]
            return _frames.with_keys(records, {"log": "str", "name": "str"}, cls, "Row")
        return rows

    def _binades(self):
        rows = [{"log": t["log"], "name": t["name"], "exponent": e, "count": count}
                for t in self["tensors"] for e, count in t["binades"]]
        return rows, row_class(log="str", name="str", exponent="int", count="int | list[int]")

    def _tables(self):
        lists = record_tables(self)
        formats = {field: self._each(field, row) for field, row in FORMATS.items()
                   if any(field in tensor for tensor in self["tensors"])}
        return {"tensors": lists.pop("tensors"), "per_step": self._each("per_step", PerStep),
                "by_scale": self._each("by_scale", ByScale), "binades": self._binades, **formats, **lists}

    def _charts(self):
        from halfscope._charts import Chart, Charts
        from halfscope._share_rows import charts_of

        page = super()._charts()
        return Charts([*page.values(), *map(Chart, charts_of(self, page))], page._of_tensor)


def _as_code(word):
    fence = "`" * (1 + max(map(len, re.findall("`+", word)), default=0))
    blank = " " if "`" in word else ""
    return f"{fence}{blank}{word}{blank}{fence}"


def _escaped(text):
    """Escapes a text for Markdown. URLs and @names, which Markdown may link, become code."""
    return "".join(_as_code(word) if re.search(r"@|://|www\.", word) else
                   re.sub(r"([\\`*_\[\]<>|#~&])", r"\\\1", word)
                   for word in re.split(r"(\s+)", text))


class Recommendation(Result, RecommendationFields):
    """The recommended loss scale for a log, with the evidence: docs/json.md, recommend.

    print() shows the answer and all findings. Tables: `findings`, and each field of the result that
    is a list of objects, such as `headroom`, `scales`, `overflow_events`.
    """

    _shown_first = ("gradients", "scales/gradients", "timeline")
    _pandas_table = "findings"

    def _plain(self):
        return dict(self)

    def __repr__(self):
        scale = self.get("static_scale")
        said = "no static loss scale" if scale is None else f"static loss scale {scale:g}"
        return (f"<Recommendation: {said}, {self['format']}, "
                f"{len(self['answer']['findings'])} findings, of {named(self['logs'])}>")

    def _tables(self):
        return {"findings": lambda: (self["answer"]["findings"], Finding), **record_tables(self)}

    # An unpickled result can be printed too: the sentences are fields.
    def _first(self):
        """Returns the headline with its action, and the sentence on the loss scale if another."""
        answer = self["answer"]
        lead = " ".join(filter(None, (answer["headline"], answer.get("action"))))
        scale = answer.get("scale", "")
        return [lead, scale] if scale not in ("", answer["headline"]) else [lead]

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
                    row_class(run="str", step="int", **{value: "float"}))
        return rows

    def _tables(self):
        return {"tensors": record_tables(self)["tensors"], "loss": self._series("loss", "loss"),
                "scales": self._series("scales", "loss_scale")}

    def _charts(self):
        from halfscope._charts import Chart, Charts
        from halfscope._compare_rows import charts_of, tensor_chart

        self._judged()
        return Charts(map(Chart, charts_of(self)), lambda tensor: tensor_chart(self, tensor))

    def save_html(self, path, title=None):
        """Writes the page of `halfscope compare A B --out`: one file that needs no network."""
        require_ending(path, ".html", ".htm")
        self._judged().write_page(title or "Two runs compared", os.fspath(path))


class Reductions(list):
    """A list with a Reduction for each sum: docs/json.md, reduce. str() describes the errors."""

    def __init__(self, found, text):
        super().__init__(found)
        self._text = text

    def __str__(self):
        return self._text

    def to_pandas(self):
        """Returns a DataFrame with a row for each sum. A prediction has NAME_low and NAME_high, and
        NA in NAME. Needs pandas."""
        return _frames.to_pandas(_frames.columns_of(self, Reduction))

    def to_arrow(self):
        """Returns a pyarrow.Table, otherwise as to_pandas(). Needs pyarrow."""
        return _frames.to_arrow(_frames.columns_of(self, Reduction))


class Policies(Result, list):
    """A list with a PolicyTrace for each policy replayed over a run: docs/json.md, policies.

    Tables: `policies`, a row for each policy; `steps`, a row for each policy and step.
    """

    _shown_first = ("policy-scales", "policy-flushed")
    _pandas_table = "policies"

    def _plain(self):
        return list(self)

    def __repr__(self):
        logs = sorted({trace.get("log", "a series") for trace in self})
        return f"<Policies: {len(self)} replayed over {named(logs)}>"

    def named(self, policy):
        """Returns the trace of a policy by its name: "torch", or "recorded" for the run itself."""
        for trace in self:
            if trace["policy"] == policy:
                return trace
        raise KeyError(f"no policy is called {described(policy)}; there are "
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
        return rows, row_class(policy="str", log="str", step="int", scale="float", attempts="int",
                              skipped="bool")

    def _tables(self):
        return {"policies": self._rows, "steps": self._steps}


class Report(Result):
    """All results on one page: `halfscope report`.

    `recommendation` is a Recommendation, `analysis` is Findings, and `policies` has the replayed
    policies (empty if the log cannot be replayed). Tables: the tables of these three.
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
        """The fields of `halfscope policies --json`; empty if the log cannot be replayed."""
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
        """Writes the page: one file that needs no network. Raises BadInput and ValueError."""
        require_ending(path, ".html", ".htm")
        self._judged().write_page(title or self.title, os.fspath(path))

    def markdown(self):
        """Returns the answer and its tables as Markdown, as `halfscope report --out FILE.md`."""
        return self._judged().markdown(self.title)

    def save_markdown(self, path):
        """Writes markdown() to a file."""
        require_ending(path, ".md", ".markdown")
        Path(path).write_text(self.markdown(), encoding="utf-8")
