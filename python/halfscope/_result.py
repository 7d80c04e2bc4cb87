# SPDX-License-Identifier: Apache-2.0
"""The base class of results: tables, charts, a page, and a display in Jupyter."""

from halfscope import _frames
from halfscope._arguments import described, require_ending
from halfscope._records import Record


class Result:
    """Base class of results: tables, charts, a page, and a display in Jupyter."""

    _shown_first = ()  # names of the charts in the display
    _pandas_table = None  # name of the table that to_pandas() returns by default
    _found = _again = _drawn = _said = None  # None in a copy, which has only the fields

    def _judged(self):
        """Returns the extension's result. Raises RuntimeError for a copy, which has only fields."""
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
        """Returns {name: function that returns (records, class)}."""
        return {}

    @property
    def tables(self):
        """Names of the tables for to_pandas() and to_arrow(), the default first."""
        return list(self._tables())

    def _columns(self, table):
        tables = self._tables()
        name = table or self._pandas_table
        if name not in tables:
            raise KeyError(f"no table is called {described(name)}; there are {', '.join(tables)}")
        return _frames.columns_of(*tables[name]())

    def to_pandas(self, table=None):
        """Returns a table as a pandas.DataFrame. table: one of `tables`; by default the first.

        Columns have the names of the fields in docs/json.md; a field of a nested object is named
        FIELD_NAME. The columns do not depend on the log: values that the log cannot answer are NA.
        A number that may be known only between bounds has three columns: NAME (NA unless it is
        exact), NAME_low and NAME_high. Needs pandas.
        """
        return _frames.to_pandas(self._columns(table))

    def to_arrow(self, table=None):
        """Returns a table as a pyarrow.Table, otherwise as to_pandas(). Needs pyarrow."""
        return _frames.to_arrow(self._columns(table))

    def __arrow_c_stream__(self, requested_schema=None):
        """The first table, for packages that read Arrow's PyCapsule interface."""
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

        `charts.of(TENSOR)` has the charts of one tensor, by its name in the log.
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
        """Writes a chart as SVG. chart: one of `charts`; by default the first chart of the display.
        options: axis="log" for logarithmic counts, width in pixels. Needs vl-convert-python."""
        self._chart(chart).save_svg(path, **options)

    def save_png(self, path, chart=None, **options):
        """Writes a chart as PNG; options as for save_svg(), and scale: pixels of the picture per
        pixel of the chart, by default 2. Needs vl-convert-python."""
        self._chart(chart).save_png(path, **options)

    # --- pages
    def save_html(self, path, title=None):
        """Writes the page of `halfscope report`: one file that needs no network.

        The logs are read again, because a page has more than one answer. title: by default the
        logs' names. Raises BadInput if the page cannot be written, and ValueError if the name has
        another ending than .html or .htm.
        """
        self._judged()
        require_ending(path, ".html", ".htm")
        self._again().save_html(path, title)

    def html(self, title=None):
        """Returns the page of save_html() as text."""
        from tempfile import TemporaryDirectory

        with TemporaryDirectory() as folder:
            path = f"{folder}/page.html"
            self.save_html(path, title)
            with open(path, encoding="utf-8") as file:
                return file.read()

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
    """Returns {field: table} for the fields of a result that are lists of records."""
    def table(field):
        return lambda: (self.get(field) or [], self._nested[field])

    return {field: table(field) for field, of in self._nested.items()
            if isinstance(self.get(field), list) and isinstance(of, type)}


def row_class(**fields):
    """Returns a class for rows of a table without a schema. fields: {column: type}."""
    return type("Row", (Record,), {"__annotations__": fields})


def named(logs):
    """Returns the name of a single log; for several logs their number."""
    names = [str(log) for log in logs]
    return names[0] if len(names) == 1 else f"{len(names)} logs"
