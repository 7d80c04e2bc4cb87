# SPDX-License-Identifier: Apache-2.0
"""Runs the simulator's stories: ./run stories [STORY...].

Each trains networks by `halfscope simulate`, asks the other commands about the runs, and writes
what came out to data/stories/STORY.json, with every command line, and a report of one of the runs
to reports/gallery/STORY.html. Results are those of the seeds: the same files come out again."""

import argparse
import json
import os
import pathlib
import sys
import time

import half_weights
import large_scale
import long_sums
import lost_update
import nan_or_scale
import small_gradients
from program import Program, ProgramFailed

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
STORIES = {"lost-update": lost_update, "small-gradients": small_gradients,
           "large-scale": large_scale, "long-sums": long_sums, "nan-or-scale": nan_or_scale,
           "half-weights": half_weights}


def tell(name, path, folder, size="full", jobs=1):
    """A story's runs, as its JSON has them; the runs themselves stay in the folder."""
    story = STORIES[name]
    program = Program(path, folder, jobs)
    return {"story": name, "title": story.TITLE, "size": size,
            **story.tell(program, story.SIZES[size])}


def text_of(found):
    """One line a run or entry: a difference of two versions can be read."""
    lines = []
    for key, part in found.items():
        if isinstance(part, list):
            rows = ",\n".join("  " + json.dumps(row) for row in part)
            lines.append(f"{json.dumps(key)}: [\n{rows}\n ]")
        else:
            lines.append(f"{json.dumps(key)}: {json.dumps(part)}")
    return "{\n " + ",\n ".join(lines) + "\n}\n"


def write_page(name, path, folder, pages):
    story = STORIES[name]
    program = Program(path, folder)
    pages.mkdir(parents=True, exist_ok=True)
    program.call("report", *story.PAGE, "--out", (pages / f"{name}.html").resolve(),
                 "--title", getattr(story, "PAGE_TITLE", story.TITLE))


def main():
    parser = argparse.ArgumentParser(prog="./run stories", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("stories", nargs="*", metavar="STORY", help=", ".join(STORIES))
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="runs at a time")
    parser.add_argument("--short", action="store_true", help="a few steps each, to try it out")
    parser.add_argument("--program", default=ROOT / "build" / "halfscope", help=argparse.SUPPRESS)
    parser.add_argument("--runs", type=pathlib.Path, default=ROOT / "build" / "stories",
                        help="where the runs go (default: build/stories)")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT,
                        help="folder whose data/stories and reports/gallery are written")
    given = parser.parse_args()
    unknown = [name for name in given.stories if name not in STORIES]
    if unknown:
        parser.error(f"no story '{unknown[0]}'; there are {', '.join(STORIES)}")
    data, pages = given.out / "data" / "stories", given.out / "reports" / "gallery"
    data.mkdir(parents=True, exist_ok=True)
    for name in given.stories or STORIES:
        start = time.monotonic()
        found = tell(name, given.program, given.runs / name, "short" if given.short else "full",
                     given.jobs)
        (data / f"{name}.json").write_text(text_of(found), encoding="utf-8")
        write_page(name, given.program, given.runs / name, pages)
        print(f"== {name}: {time.monotonic() - start:.0f} s", file=sys.stderr, flush=True)


if __name__ == "__main__":
    try:
        main()
    except ProgramFailed as failed:
        sys.exit(f"stories: {failed}")
