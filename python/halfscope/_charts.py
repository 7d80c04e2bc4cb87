# SPDX-License-Identifier: Apache-2.0
"""The charts of a page as objects: Vega-Lite with its rows, drawn by vl-convert or Altair."""

import functools
import os
import re
from collections.abc import Mapping
from pathlib import Path

from halfscope._arguments import described, require_ending
from halfscope._parts import part

FOLDER = Path(__file__).parent / "charts"  # reports/assets/charts
WIDTH = 640  # pixels
TITLE = 60  # height of a title in pixels; in a page the title is outside of the chart
FONT = "Arial, 'Liberation Sans', Helvetica, sans-serif"  # vl-convert knows its widths everywhere
WIDEST = 1.25  # width of DejaVu Sans, a possible fallback font, relative to Arial


@functools.lru_cache(maxsize=None)
def _read(folder):
    """Returns {NAME: content of NAME.json} for all files of a folder."""
    import json

    return {file.stem: json.loads(file.read_text(encoding="utf-8"))
            for file in sorted((FOLDER / folder).glob("*.json"))}


def filled(given, values):
    """Returns a specification with its placeholders replaced (reports/assets/charts/README.md)."""
    if isinstance(given, list):
        out = []
        for element in given:
            value = filled(element, values)
            names_list = isinstance(element, dict) and "$" in element and isinstance(value, list)
            out += value if names_list else [value]
        return out
    if not isinstance(given, dict):
        return given
    own = {key: filled(value, values) for key, value in given.items() if key != "$"}
    if "$" not in given:
        return own
    value = filled(values[given["$"]], values)
    return {**value, **own} if isinstance(value, dict) else value


def _config(width):
    """Returns the light theme of a page, as configOf() in charts.js does."""
    shared = _read("shared")
    config = filled(shared["theme"], {**shared["pieces"], **shared["light"]})
    config.update(background=shared["light"]["card"], font=FONT)
    config["axisY"] = {"labelLimit": max(110, round(width * 0.32))}
    config["legend"] = {**config["legend"], "columns": 1 if width < 560 else 2,
                        "labelLimit": round(width * 0.45)}
    return config


class Chart:
    """One chart: `name`, `log`, `title`, `note`, and the `rows` that it draws.

    Jupyter shows it as a picture, drawn by vl-convert without scripts or network. altair() returns
    an interactive chart.
    """

    def __init__(self, told):
        self.name, self.log = told["name"], told.get("log", "")
        self.rows = told["rows"]
        self._chart, self._page = told["chart"], told.get("page", "page")
        self._parameters = told.get("parameters", {})
        given = _read(self._page)[self._chart]
        self.title = told.get("title") or given.get("description", self._chart)
        self.note = told.get("note", "")

    def __repr__(self):
        return f"<Chart {self.name!r}: {len(self.rows)} rows>"

    def spec(self, *, axis="linear", width=WIDTH):
        """Returns the Vega-Lite specification as a dict, with the rows. axis: "linear" or "log"
        counts, if the chart has the choice. width: width of the picture in pixels."""
        if not isinstance(axis, str) or axis not in ("linear", "log"):
            raise ValueError(f"axis is {described(axis)}, expected 'linear' or 'log'")
        given = _read(self._page)[self._chart]
        axes = _read("axes")[axis] if self._page == "page" else {}
        spec = filled(given, {**_read("shared")["pieces"], **axes, **self._parameters})
        data = spec["data"]["name"] if "data" in spec else self._chart
        spec.update(width=width, datasets={data: self.rows}, config=_config(width),
                    title={"text": self.title, "anchor": "start", "offset": 14, "fontSize": 13,
                           "limit": width})
        if isinstance(spec.get("height"), dict):  # a number of pixels for each name
            names = {row[spec["encoding"]["y"]["field"]] for row in self.rows}
            spec["height"] = spec["height"]["step"] * len(names)
        else:
            spec["height"] += TITLE
        if self._page == "compare":
            spec["layer"] = _drawn_layers(spec["layer"], self.rows)
        return {"$schema": "https://vega.github.io/schema/vega-lite/v5.json", **spec}

    def altair(self, **options):
        """Returns the chart as an altair.Chart. options: as for spec()."""
        spec = self.spec(**options)
        rows = spec.pop("datasets")  # from_dict() would need seconds for them
        # Altair validates the chart when it is drawn; validating here too is ten times slower.
        chart = part("altair", "altair()", "altair").Chart.from_dict(spec, validate=False)
        chart.datasets = rows
        return chart

    def svg(self, **options):
        """Returns the chart as SVG text. options: as for spec()."""
        convert = part("vl_convert", "a chart as SVG", "vl-convert-python")
        return _at_size(convert.vegalite_to_svg(_larger(_still(self.spec(**options)))))

    def png(self, *, scale=2, **options):
        """Returns the bytes of a PNG file. scale: pixels of the picture per pixel of the chart."""
        convert = part("vl_convert", "a chart as PNG", "vl-convert-python")
        return convert.vegalite_to_png(_still(self.spec(**options)), scale=scale)

    def save_svg(self, path, **options):
        """Writes the chart as SVG. options: as for spec()."""
        require_ending(path, ".svg")
        Path(path).write_text(self.svg(**options), encoding="utf-8")

    def save_png(self, path, **options):
        """Writes the chart as PNG. options: as for png()."""
        require_ending(path, ".png")
        Path(path).write_bytes(self.png(**options))

    def save(self, path, **options):
        """Writes the chart as SVG or PNG, by the ending of the file's name: .svg or .png."""
        ending = os.path.splitext(os.fspath(path))[1].lower()
        if ending not in (".svg", ".png"):
            raise ValueError(f"the name of a chart's file ends in .svg or .png, found {os.fspath(path)!r}")
        (self.save_svg if ending == ".svg" else self.save_png)(path, **options)

    def _repr_mimebundle_(self, include=None, exclude=None):
        try:
            return {"image/svg+xml": self.svg(), "text/plain": repr(self)}
        except ImportError as error:
            return {"text/plain": f"{self!r}: {error}"}


def _still(spec):
    """Returns a specification for a static picture: without the invisible points that only serve
    tooltips, and with a second legend below the first."""
    legend = {**spec["config"]["legend"], "layout": {"bottom": {"direction": "vertical"}}}
    spec = {**spec, "config": {**spec["config"], "legend": legend}}  # Altair would refuse "layout"
    if "layer" not in spec:
        return spec
    return {**spec, "layer": [layer for layer in spec["layer"] if not _is_hovered(layer.get("mark"))]}


def _larger(spec):
    """Returns a specification with font sizes times WIDEST. An SVG fixes the positions of texts, so
    they need space for the widest font that a reader may have."""
    if isinstance(spec, list):
        return [_larger(value) for value in spec]
    if not isinstance(spec, dict):
        return spec
    return {name: value * WIDEST if name.lower().endswith("fontsize") else
            value if name == "datasets" else _larger(value) for name, value in spec.items()}


def _at_size(svg):
    """Returns an SVG of _larger() with its texts in their real size, at unchanged positions."""
    return re.sub(r'font-size="([\d.]+)px"', lambda size: f'font-size="{float(size[1]) / WIDEST:g}px"', svg)


def _is_hovered(mark):
    return isinstance(mark, dict) and mark.get("type") == "point" and mark.get("opacity") == 0


def _drawn_layers(layers, rows):
    """Returns layers without a name and those whose run has values, as draw() in compare.js."""
    there = [row for row in rows if row.get("loss", 0) is not None]
    drawn = {f"run{row['run']}" for row in there} | {
        f"skipped{row['run']}" for row in there if row.get("skipped")}
    return [layer for layer in layers if layer.get("name") is None or layer["name"] in drawn]


class Charts(Mapping):
    """Charts by name, in the order of the page. If logs have charts of one name, those of the later
    logs are named "LOG: NAME"."""

    def __init__(self, charts, of_tensor=None):
        self._charts, self._of_tensor = {}, of_tensor
        for chart in charts:
            taken = chart.name in self._charts
            self._charts[f"{chart.log}: {chart.name}" if taken else chart.name] = chart

    def __getitem__(self, name):
        try:
            return self._charts[name]
        except KeyError:
            raise KeyError(f"no chart is called {described(name)}; there are {', '.join(self) or 'none'}") from None

    def __iter__(self):
        return iter(self._charts)

    def __len__(self):
        return len(self._charts)

    def __repr__(self):
        return f"<Charts: {', '.join(self) or 'none'}>"

    def of(self, tensor):
        """Returns the charts of one tensor, by its name in the log: "histogram", "heat" and
        "scales". Raises KeyError if the log has no finite nonzero values of it."""
        found = self._of_tensor(tensor) if self._of_tensor else []
        if not found:
            raise KeyError(f"the log has no finite nonzero values of a tensor {described(tensor)}")
        charts = Charts([])
        charts._charts = {told["chart"]: Chart(told) for told in found}
        return charts

    def first(self, names):
        """Returns the first chart with one of these names, else the first of all; None if none."""
        return next((self[name] for name in names if name in self), next(iter(self.values()), None))
