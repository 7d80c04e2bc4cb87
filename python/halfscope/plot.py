# SPDX-License-Identifier: Apache-2.0
"""python -m halfscope.plot LOG --out FILE.svg: a chart of a log, by default the log2 histogram of its
gradients with the format's limits, without a loss scale and at the recommended one."""

import argparse
import sys

import halfscope


def _arguments(given):
    parser = argparse.ArgumentParser(prog="python -m halfscope.plot", description=__doc__)
    parser.add_argument("log", nargs="+", metavar="LOG", help="of every kind in docs/logs.md")
    parser.add_argument("--out", required=True, metavar="FILE", help="ends in .svg or .png")
    parser.add_argument("--chart", metavar="NAME",
                        help="another chart of the page, such as heat/weight_grad or policy-scales")
    parser.add_argument("--tensor", metavar="NAME", help="of one tensor, by its name in the log")
    parser.add_argument("--format", help="default: the one that the run computed in")
    parser.add_argument("--axis", choices=("linear", "log"), default="linear", help="of the counts")
    parser.add_argument("--width", type=int, default=640, help="in pixels")
    return parser.parse_args(given)


def chart_of(log, *, chart=None, tensor=None, format=None):
    """Returns the Chart to draw. Raises BadInput, and KeyError for an unknown chart or tensor."""
    advice = halfscope.recommend(log, format=format)
    if tensor is not None:
        return advice.charts.of(tensor)[chart or "histogram"]
    if chart is not None and chart not in advice.charts:  # a page has more
        advice = halfscope.report(log, format=format)
    if chart is not None:
        return advice.charts[chart]
    found = advice.charts.first(["gradients", *(n for n in advice.charts if n.startswith("histogram"))])
    if found is None:
        raise ValueError("the log has no finite nonzero values to draw")
    return found


def main(given=None):
    options = _arguments(given)
    try:
        chart = chart_of(options.log, chart=options.chart, tensor=options.tensor, format=options.format)
        chart.save(options.out, axis=options.axis, width=options.width)
    except (ValueError, KeyError, ImportError, OSError) as error:
        said = error.args[0] if isinstance(error, KeyError) else error
        print(f"halfscope.plot: {said}", file=sys.stderr)
        return 1
    print(options.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
