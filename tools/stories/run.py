# SPDX-License-Identifier: Apache-2.0
"""Runs the simulator's stories: ./run stories [STORY...].

Each story trains networks with `halfscope simulate` and runs other commands on the logs. It writes
the results, with every command line, to data/stories/STORY.json, and a report of one of the runs to
reports/gallery/STORY.html. Results depend only on the seeds, so the same files are made again.

--check writes to a temporary folder instead and compares: it prints the files that differ; exit
code 1 if there are any. --pages makes only the reports: existing runs in the folder of runs are
used, missing runs are trained by their command line in data/stories. Runs on a GPU in data/cudnn-*
are pages too, and can be named like a story."""

import argparse
import json
import os
import pathlib
import sys
import tempfile
import time

import advice
import half_weights
import harm
import large_scale
import long_sums
import lost_update
import nan_or_scale
import pages
import small_gradients
from check import differences
from program import Program, ProgramFailed

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
STORIES = {"lost-update": lost_update, "small-gradients": small_gradients,
           "large-scale": large_scale, "long-sums": long_sums, "nan-or-scale": nan_or_scale,
           "half-weights": half_weights, "harm": harm, "advice": advice}
DATA, GALLERY = pathlib.Path("data/stories"), pathlib.Path("reports/gallery")


def tell(name, path, folder, size="full", jobs=1):
    """Makes a story's runs in the folder. Returns the content of its JSON."""
    story = STORIES[name]
    program = Program(path, folder, jobs)
    return {"story": name, "title": story.TITLE, "size": size,
            **story.tell(program, story.SIZES[size])}


def text_of(found):
    """Returns the JSON with one line for each run or entry, so that diffs are readable."""
    lines = []
    for key, part in found.items():
        if isinstance(part, list):
            rows = ",\n".join("  " + json.dumps(row) for row in part)
            lines.append(f"{json.dumps(key)}: [\n{rows}\n ]")
        else:
            lines.append(f"{json.dumps(key)}: {json.dumps(part)}")
    return "{\n " + ",\n ".join(lines) + "\n}\n"


def make(name, given, runs, out):
    """Writes a story's JSON and page, or only its page. Returns the files as relative paths."""
    start = time.monotonic()
    data, files = DATA / f"{name}.json", []
    if name not in STORIES:
        pages.note(out / GALLERY, name, pages.write_recorded(name, given.program, given.out, out / GALLERY))
        return [GALLERY / f"{name}.html"]
    if given.pages:
        found = json.loads((ROOT / data).read_text(encoding="utf-8"))
    else:
        found = tell(name, given.program, runs / name, "short" if given.short else "full",
                     given.jobs)
        (out / DATA).mkdir(parents=True, exist_ok=True)
        (out / data).write_text(text_of(found), encoding="utf-8")
        files.append(data)
    if hasattr(STORIES[name], "PAGE"):
        lines = pages.write_page(name, STORIES[name], given.program, runs / name, found,
                                 out / GALLERY)
        pages.note(out / GALLERY, name, lines)
        files.append(GALLERY / f"{name}.html")
    print(f"== {name}: {time.monotonic() - start:.0f} s", file=sys.stderr, flush=True)
    return files


def check(names, given):
    """Makes the files in a temporary folder. Returns True if the shipped files are the same."""
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        # All runs are trained again, except for --pages, which may use existing runs.
        runs = given.runs if given.pages or given.runs != RUNS else folder / "runs"
        files = [file for name in names for file in make(name, given, runs, folder)]
        found = differences(folder, given.out, files)
    for file, what in found:
        print(f"{file} {what}")
    print(f"{len(files) - len(found)} of {len(files)} files are the same "
          f"({time.monotonic() - start:.0f} s)")
    return not found


RUNS = ROOT / "build" / "stories"


def arguments():
    parser = argparse.ArgumentParser(prog="./run stories", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("stories", nargs="*", metavar="STORY", help=", ".join(STORIES))
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="runs at a time")
    parser.add_argument("--short", action="store_true", help="a few steps each, to try it out")
    parser.add_argument("--check", action="store_true",
                        help="compare with the files that are there, and write none of them")
    parser.add_argument("--pages", action="store_true", help="the reports alone")
    parser.add_argument("--program", default=ROOT / "build" / "halfscope", help=argparse.SUPPRESS)
    parser.add_argument("--runs", type=pathlib.Path, default=RUNS,
                        help="where the runs go (default: build/stories; with --check and without "
                             "--pages a temporary folder)")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT,
                        help="folder whose data/stories and reports/gallery are written")
    given = parser.parse_args()
    given.out = given.out.resolve()
    given.known = [*STORIES, *pages.recorded(given.out)]
    unknown = [name for name in given.stories if name not in given.known]
    if unknown:
        parser.error(f"no story '{unknown[0]}'; there are {', '.join(given.known)}")
    if given.pages and given.short:
        parser.error("--pages makes the pages that are shipped: --short does not go with it")
    return given


def main():
    given = arguments()
    names = given.stories or given.known
    if given.pages:
        names = [name for name in names if name not in STORIES or hasattr(STORIES[name], "PAGE")]
    if given.check:
        return 0 if check(names, given) else 1
    for name in names:
        make(name, given, given.runs, given.out)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except ProgramFailed as failed:
        sys.exit(f"stories: {failed}")
