# SPDX-License-Identifier: Apache-2.0
"""The display of a result in a notebook: the sentences and tables of the answer as HTML."""

import base64
import html

# These characters enclose names and code inside a sentence (reports/answer/text.hpp).
BEGIN, END = "\x0e", "\x0f"
MOST_ROWS = 20  # rows of a table that are shown; to_pandas() has all rows

STYLE = """<style>
.halfscope {max-width: 62rem; font-family: system-ui, sans-serif; line-height: 1.45}
.halfscope .first {font-size: 1.1em}
.halfscope .numbers {display: flex; flex-wrap: wrap; gap: .6em; margin: .6em 0}
.halfscope .number {flex: 1 1 12rem; max-width: 16rem; border: 1px solid #8885; border-radius: 6px; padding: .4em .8em}
.halfscope .number b {display: block; font-size: 1.25em}
.halfscope small {opacity: .75}
.halfscope pre {background: #8881; padding: .5em .8em; border-radius: 4px; overflow-x: auto}
.halfscope li {margin: .25em 0; text-align: left}
.halfscope .breaks::marker, .halfscope .serious::marker {color: #d55e00; font-weight: bold}
.halfscope table {border-collapse: collapse; margin: .4em 0}
.halfscope th, .halfscope td {padding: .15em .7em; text-align: left; border-bottom: 1px solid #8883}
.halfscope .number-column {text-align: right; font-variant-numeric: tabular-nums}
.halfscope .marked {font-weight: bold}
.halfscope summary {cursor: pointer; font-weight: bold; margin-top: .5em}
.halfscope img {max-width: 100%; background: #fff; border-radius: 6px; margin: .3em 0}
</style>"""


def plain(text):
    return text.replace(BEGIN, "").replace(END, "")


def marked(text):
    return html.escape(text).replace(BEGIN, "<code>").replace(END, "</code>")


def _first(shown):
    if not shown["first"]:
        return ""
    lead, *rest = map(marked, shown["first"])
    return f'<p class="first"><b>{lead}</b></p>' + "".join(f"<p>{line}</p>" for line in rest)


def _paste(paste):
    label = f"<p>{marked(paste['label'])}:</p>" if paste["label"] else ""
    note = f"<p><small>{marked(paste['note'])}</small></p>" if paste["note"] else ""
    return f"{label}<pre>{html.escape(paste['lines'])}</pre>{note}"


def _numbers(numbers):
    tiles = "".join(f'<div class="number">{marked(n["title"])}<b>{marked(n["value"])}</b>'
                    f'<small>{marked(n["detail"])}</small></div>' for n in numbers)
    return f'<div class="numbers">{tiles}</div>' if tiles else ""


def _findings(shown):
    clear = f"<p>{marked(shown['clear'])}</p>" if shown["clear"] else ""
    items = "".join(f'<li class="{f["severity"]}"><b>{marked(f["title"])}</b> {marked(f["action"])}</li>'
                    for f in shown["findings"])
    return clear + (f"<ol>{items}</ol>" if items else "")


def _row(cells, table, tag="td", kind=""):
    columns = (f'<{tag}{" class=number-column" if number else ""}>{marked(cell)}</{tag}>'
               for cell, number in zip(cells, table["numbers"]))
    return f"<tr{kind}>{''.join(columns)}</tr>"


def _table(table, above):
    title = f"<p><b>{marked(table['title'])}</b></p>" if table["title"] not in ("", above) else ""
    note = f"<p><small>{marked(table['note'])}</small></p>" if table["note"] else ""
    rows = "".join(_row(cells, table, kind=" class=marked" if is_marked else "")
                   for cells, is_marked in list(zip(table["rows"], table["marked"]))[:MOST_ROWS])
    left_out = max(0, len(table["rows"]) - MOST_ROWS) + table["left_out"]
    more = f"<p><small>{left_out} more rows</small></p>" if left_out else ""
    return (f"{title}{note}<table><thead>{_row(table['headings'], table, 'th')}</thead>"
            f"<tbody>{rows}</tbody></table>{more}")


def _section(section):
    sentences = "".join(f"<li>{marked(text)}</li>" for text in section["sentences"])
    return ((f"<ul>{sentences}</ul>" if sentences else "")
            + "".join(map(_paste, section["pastes"]))
            + "".join(_table(table, _title(section)) for table in section["tables"]))


def _title(section):
    tables = [table["title"] for table in section["tables"] if table["title"]]
    return section["title"] or next(iter(tables), "")


def _open(section):
    title = f"<p><b>{marked(_title(section))}</b></p>" if _title(section) else ""
    return title + _section(section)


def _folded(section, is_open):
    return (f"<details{' open' if is_open else ''}><summary>{marked(_title(section))}</summary>"
            f"{_section(section)}</details>")


def _sections(sections, shown):
    """Returns the sections, folded. The first is open if nothing else shows the key numbers."""
    has_numbers = shown["numbers"] or shown["findings"] or not shown["first"]
    return "".join(_folded(section, at == 0 and not has_numbers) if _title(section) else _open(section)
                   for at, section in enumerate(sections))


def picture(chart):
    """As an image: untrusted notebooks keep it, and no script is needed."""
    data = base64.b64encode(chart.svg().encode()).decode()
    return f'<img alt="{html.escape(chart.title)}" src="data:image/svg+xml;base64,{data}">'


def _pictures(charts):
    try:
        return "".join(f"<div>{picture(chart)}</div>" for chart in charts)
    except ImportError as error:
        return f"<p><small>{html.escape(str(error))}</small></p>"


def html_of(shown, charts):
    """Returns a fragment of HTML: headline, code to paste, key numbers, findings, charts, rest."""
    paste = _paste(shown["paste"]) if shown["paste"] else ""
    sections = shown["sections"]
    lead = "" if shown["first"] else "".join(map(_open, sections[:1]))
    rest = _sections(sections if shown["first"] else sections[1:], shown)
    return (f'{STYLE}<div class="halfscope">{_first(shown)}{paste}{_numbers(shown["numbers"])}'
            f"{_findings(shown)}{lead}{_pictures(charts)}{rest}</div>")


def text_of(shown):
    """Returns the display as plain text, without the evidence."""
    lines = [plain(line) for line in shown["first"]]
    if shown["paste"]:
        lines += ["", *(f"  {line}" for line in shown["paste"]["lines"].splitlines()), ""]
    if shown["clear"]:
        lines.append("* " + plain(shown["clear"]))
    lines += ["* " + " ".join(filter(None, map(plain, (f["title"], f["action"]))))
              for f in shown["findings"]]
    if not lines:
        lines = [plain(text) for section in shown["sections"][:1]
                 for text in filter(None, [section["title"], *section["sentences"]])]
    return "\n".join(lines)
