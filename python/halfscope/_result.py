# SPDX-License-Identifier: Apache-2.0
"""What all results have: tables, charts, a page, and a display of their own in Jupyter."""

from halfscope import _frames
from halfscope._arguments import described, require_ending
from halfscope._records import Record


class Result:
    """What all results have: tables, charts, a page, and a display of their own in Jupyter."""

    _shown_first = ()  # charts of the display, by name
    _pandas_table = None  # the table that to_pandas() gives without a name
    _found = _again = _drawn = _said = None  # of a copy

    def _judged(self):
        """What the library found; a copy or an unpickled result has the fields alone."""
        if self._found is None:
            raise RuntimeError(f"this {type(self).__name__} is a copy that has its fields alone: charts, "
                               "pages and the display need the result of the call itself")
        return self._found

    def _keep(self, found, again=None):
        self._found, self._again = found, again
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
            raise KeyError(f"no table is called {described(name)}; there are {', '.join(tables)}")
        return _frames.columns_of(*tables[name]())

    def to_pandas(self, table=None):
        """One table as a pandas.DataFrame. table: one of `tables`; by default the first.

        Columns are named as the fields of docs/json.md, those of an object in a field FIELD_NAME.
        The columns of a table do not depend on the log: what it cannot answer is missing (NA). A
        number that may be known between bounds only is three columns: NAME (NA where it is not
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
        names. Raises BadInput where the page cannot be written, ValueError of a name that ends in
        another way than .html or .htm.
        """
        self._judged()
        require_ending(path, ".html", ".htm")
        self._again().save_html(path, title)

    # --- display
    def _display_charts(self):
        charts = self.charts
        return [charts[name] for name in self._shown_first if name in charts]

    def _repr_html_(self):
        from halfscope._display import html_of

        if self._found is None:
            return None
        return html_of(self._shown(), self._display_charts())

    def __str__(self):
        from halfscope._display import text_of

        return repr(self) if self._found is None else text_of(self._shown())

    def __reduce__(self):
        return type(self), (self._plain(),)


def record_tables(self):
    """Lists of records that this result has, by field."""
    def table(field):
        return lambda: (self.get(field) or [], self._nested[field])

    return {field: table(field) for field, of in self._nested.items()
            if isinstance(self.get(field), list) and isinstance(of, type)}


def row_class(**fields):
    """The class of a table's rows that no schema has: {column: type}."""
    return type("Row", (Record,), {"__annotations__": fields})


def named(logs):
    """One log by its name, several by their number."""
    names = [str(log) for log in logs]
    return names[0] if len(names) == 1 else f"{len(names)} logs"
