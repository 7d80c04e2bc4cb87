# SPDX-License-Identifier: Apache-2.0
"""The screen of `halfscope watch`. Importing it needs rich. The command uses Live from here."""

import math

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text
from rich.theme import Theme

from halfscope.watch.figures import facts

CONSOLE = Console(highlight=False, theme=Theme({
    "zero": "red", "subnormal": "yellow", "normal": "green", "overflow": "magenta", "breaks": "bold red",
    "serious": "bold red", "warning": "bold yellow", "note": "bold", "small": "dim"}))
_UTF8 = CONSOLE.encoding.startswith("utf")
_BARS, _LINE, _END = (" ▁▂▃▄▅▆▇█", "─", "│") if _UTF8 else ("    #####", "-", "|")
_HIGHEST = 16  # lines of the histogram
_NAME = 28  # columns for a tensor's name


def screen(found, below):
    """Returns what rich draws. found: the figures, or None without a log. below: the last line."""
    if found is None:
        return Text(below)
    first = Text()
    for name, fact in facts(found):
        if fact is not None:
            first.append(f"{name} ").append(f"{fact}   ", "bold")
    first.rstrip()
    top = [first, Text(), Text(found.headline, found.severity), Text(found.action), Text(),
           Text(found.sentence or "")]
    top = [each for at, each in enumerate(top) if each or at and top[at - 1]]
    bottom = [Text(), *_table(found, CONSOLE.width),
              *(Text(text, "small", no_wrap=True, overflow="ellipsis")
                for text in (found.note and f"note: {found.note}", below) if text)]
    taken = sum(len(CONSOLE.render_lines(each)) for each in top + bottom)
    height = min(CONSOLE.height - taken - len(found.bands) - 2, _HIGHEST)
    return Group(*top, *_histogram(found, CONSOLE.width, height), *bottom)


def _table(found, width):
    columns = list(zip(found.headings, *found.tensors))
    widths = [2 + max(map(len, column)) for column in columns[1:]]
    while sum(widths) > width - _NAME:
        columns.pop()
        widths.pop()
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="small")
    for at, (heading, *_) in enumerate(columns):
        table.add_column(Text(heading), justify="right" if at else "left", overflow="ellipsis", no_wrap=True,
                         min_width=len(heading), max_width=None if at else width - sum(widths))
    for row in list(zip(*columns))[1:]:
        table.add_row(*map(Text, row))
    return [table] if columns else []


def _histogram(found, width, height):
    """Returns the lines of the histogram: the bars, whose heights are logarithmic, the axis, and for
    each loss scale a line with FP16's limits."""
    if not found.histogram or height < 2 or width < 20:
        return []
    limits = [end for bands in found.bands.values() for _, _, end in bands[:-1]]
    last = math.ceil(max([*limits, *found.histogram])) + 3
    first = math.floor(min([*limits, *found.histogram])) - 3
    wide = max(1, min(3, (width - 1) // (last - first)))
    first = max(first, last - (width - 1) // wide)
    counts = [sum(count for e, count in found.histogram.items() if e <= first)]
    counts += [found.histogram.get(e, 0) for e in range(first + 1, last)]
    eighths = [math.ceil(8 * height * math.log(1 + count, 1 + max(counts))) for count in counts]
    classes = [[next((kind for kind, _, end in bands if e + 0.5 < end), bands[-1][0])
                for e in range(first, last)] for bands in found.bands.values()]
    lines = [Text()]
    for row in range(height - 1, -1, -1):
        lines.append(Text.assemble(*((_BARS[max(0, min(8, high - 8 * row))] * wide, kind)
                                     for high, kind in zip(eighths, classes[0]))))
    ticks = [e for e in range(first, last - 5 // wide) if e % 10 == 0]
    axis = "".join(f"2^{e}".ljust(10 * wide) for e in ticks)
    lines.append(Text(" " * (wide * (ticks[0] - first)) + axis.rstrip(), "small"))
    return lines + [_limits(*each, wide) for each in zip(found.bands, classes)]


def _limits(scale, classes, wide):
    text = Text(no_wrap=True, overflow="crop")
    for kind in dict.fromkeys(classes):
        cells = classes.count(kind) * wide - 1
        name = scale if kind == "normal" else kind
        label = next(label for label in (f" {name} ", name, "") if len(label) <= cells)
        text.append(label.center(cells, _LINE) + _END, kind)
    text.right_crop(1)
    return text
