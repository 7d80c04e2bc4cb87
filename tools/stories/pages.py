# SPDX-License-Identifier: Apache-2.0
"""The gallery: a report of one run of a story, or of a run on a GPU in data/, and the command lines
that make it."""

import json
import shlex

from program import Program, command_line

MADE_BY = "pages.json"  # file in the gallery with the command lines of every page


def runs_in(found):
    """Returns {name: command line} for every run in a story's JSON."""
    if isinstance(found, dict) and "command" in found and "settings" in found:
        return {found["name"]: found["command"]}
    parts = found.values() if isinstance(found, dict) else found
    return {name: command for part in parts if isinstance(part, (dict, list))
            for name, command in runs_in(part).items()}


def make_run(story, program, told):
    """Makes the page's run, unless it exists. Returns its command line from the story's JSON."""
    name = story.PAGE[0]
    command = runs_in(told).get(name)
    if command is None:
        story.write_page_log(program)
    elif not (program.folder / name / "run.json").is_file():
        program.call(*shlex.split(command)[1:], "--threads", 1, "--force")
    return command


def write_page(name, story, path, folder, told, pages):
    """Writes a page. Returns the command lines, as a user would type them."""
    program = Program(path, folder)
    pages.mkdir(parents=True, exist_ok=True)
    run = make_run(story, program, told)
    report = ["report", *story.PAGE, "--title", getattr(story, "PAGE_TITLE", story.TITLE), "--out"]
    program.call(*report, (pages / f"{name}.html").resolve())
    lines = [command_line([*report, f"{name}.html"])]
    return lines if run is None else [run, *lines]


def recorded(root):
    """Names of the folders of data/ that hold a run on a GPU (docs/gpu.md); their pages have them too."""
    return sorted(file.parts[-3] for file in root.glob("data/cudnn-*/log/run.json"))


def write_recorded(name, path, root, pages):
    """Writes the page of a run on a GPU. Returns its command line, to be typed in the checkout."""
    title = (root / "data" / name / "README.md").read_text(encoding="utf-8").splitlines()[0].lstrip("# ")
    pages.mkdir(parents=True, exist_ok=True)
    report = ["report", f"data/{name}/log", "--title", title, "--out"]
    Program(path, root).call(*report, (pages / f"{name}.html").resolve())
    return [command_line([*report, f"{name}.html"])]


def note(pages, name, lines):
    """Adds the command lines of one page to the file with those of all pages."""
    file = pages / MADE_BY
    known = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
    known[name] = lines
    rows = ",\n".join(f" {json.dumps(key)}: {json.dumps(known[key])}" for key in sorted(known))
    file.write_text("{\n" + rows + "\n}\n", encoding="utf-8")
