# SPDX-License-Identifier: Apache-2.0
"""Links in the project's Markdown and notebooks lead to a file and a heading; so do the pages that
comments and messages name."""

import json
import pathlib
import re
import subprocess

import pytest

from program import ROOT

FENCE = re.compile(r"^( *)(```|~~~).*?^\1\2", re.DOTALL | re.MULTILINE)
SPAN = re.compile(r"(`+)(?!`).+?(?<!`)\1(?!`)")


def tracked(*patterns):
    """Files of the checkout; without git, those below the folders that hold documentation."""
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", *patterns], cwd=ROOT,
                            capture_output=True, text=True)
    if listed.returncode == 0:
        names = [ROOT / name for name in listed.stdout.splitlines()]
        return sorted(path for path in names if path.exists())
    pytest.skip("no git checkout")


def text_of(path):
    if path.suffix != ".ipynb":
        return path.read_text(encoding="utf-8")
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return "\n\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")


def anchor(heading):
    """The anchor that GitHub gives a heading."""
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading.strip()).lower()
    return re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")


def anchors(path):
    found = []
    for heading in re.findall(r"^#{1,6} +(.+?) *$", FENCE.sub("", text_of(path)), re.MULTILINE):
        name = anchor(heading)
        found.append(f"{name}-{found.count(name)}" if name in found else name)
    return set(found)


def links(path):
    """(text, target) of every link that is not in code, anchors of the page itself included."""
    return re.findall(r"\[([^\]\[]*)\]\(([^)\s]+)\)", SPAN.sub("", FENCE.sub("", text_of(path))))


def dead_links(path):
    for _, target in links(path):
        if re.match(r"[a-z]+:", target):
            continue
        file, _, name = target.partition("#")
        to = (path.parent / file).resolve() if file else path
        if not to.exists():
            yield f"{target}: no such file"
        elif name and to.suffix in (".md", ".ipynb") and name not in anchors(to):
            yield f"{target}: no such heading"


def test_links_and_anchors_lead_somewhere():
    pages = tracked("*.md", "*.ipynb")
    assert ROOT / "README.md" in pages and len(pages) > 20
    faults = [f"{page.relative_to(ROOT)}: {fault}" for page in pages for fault in dead_links(page)]
    assert faults == []


def test_pages_that_code_names_exist():
    named = re.compile(r"\bdocs/[\w./-]*?\.(?:md|json|cpp|png)\b(?:#[\w-]+)?")
    files = tracked("*.cpp", "*.hpp", "*.cu", "*.py", "*.sh", "*.cmake", "*.txt", "*.proto", "run")
    faults = []
    for file in files:
        for name in named.findall(text_of(file)) if file != pathlib.Path(__file__) else ():
            page, _, heading = name.partition("#")
            if "docs/en/" in page:  # another project's
                continue
            if not (ROOT / page).exists() or heading and heading not in anchors(ROOT / page):
                faults.append(f"{file.relative_to(ROOT)}: {name}")
    assert faults == []


def test_every_page_of_docs_is_on_the_way_in():
    index = (ROOT / "docs/README.md").read_text(encoding="utf-8")
    pages = [page.relative_to(ROOT / "docs").as_posix() for page in tracked("docs/*.md")]
    assert [page for page in pages if page != "README.md" and f"({page})" not in index] == []


@pytest.mark.parametrize("text, fault", [
    ("[a](missing.md)", "missing.md: no such file"),
    ("# One\n\n[a](#two)", "#two: no such heading"),
    ("# One & `two`\n\n[a](#one--two) `[b](c.md)`\n```\n[d](e.md)\n```\n", None),
])
def test_a_dead_link_is_found(tmp_path, text, fault):
    page = tmp_path / "page.md"
    page.write_text(text)
    assert list(dead_links(page)) == ([fault] if fault else [])
