# SPDX-License-Identifier: Apache-2.0
"""The gallery's pages come out again: ./run stories --check, and what it compares."""

import json
import shutil
import subprocess
import sys

import pytest

from program import PROGRAM, ROOT, run

GALLERY = ROOT / "reports" / "gallery"
SHORTEST = ("lost-update", "nan-or-scale")  # the pages that are made in the least time


def stories(*arguments):
    return subprocess.run([sys.executable, "-B", ROOT / "tools/stories/run.py", "--program",
                           PROGRAM, *map(str, arguments)], capture_output=True, text=True,
                          timeout=300)


def made_by():
    file = GALLERY / "pages.json"
    return json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}


def test_two_pages_of_the_gallery_come_out_again(tmp_path):
    """`./run stories --pages` writes the pages of the program that is there, and pages.json."""
    if not set(SHORTEST) <= set(made_by()):
        pytest.skip("the gallery is from before pages.json: ./run stories --pages makes it anew")
    shipped = json.loads((ROOT / "data/stories/nan-or-scale.json").read_text(encoding="utf-8"))
    folder = tmp_path / "backend"
    run("simulate", "mlp", "--steps", "1", "--out", folder)
    here = json.loads((folder / "run.json").read_text(encoding="utf-8"))["backend"]
    if f'"{here}"' not in json.dumps(shipped):
        pytest.skip(f"the gallery's runs were made by another backend than {here}")
    done = stories("--check", "--pages", "--runs", tmp_path / "runs", *SHORTEST)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith("2 of 2 files are the same")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """One page and the run that it is of, elsewhere."""
    folder = tmp_path_factory.mktemp("gallery")
    done = stories("--pages", "--runs", folder / "runs", "--out", folder, "lost-update")
    assert done.returncode == 0, done.stderr
    return folder


def page_of(folder):
    return folder / "reports/gallery/lost-update.html"


def test_the_command_lines_in_pages_json_make_the_page(made, tmp_path):
    lines = json.loads((made / "reports/gallery/pages.json").read_text(encoding="utf-8"))
    assert set(lines) == {"lost-update"}
    shutil.copytree(made / "runs/lost-update/lost-update", tmp_path / "lost-update")
    for line in lines["lost-update"]:
        subprocess.run(line.replace("halfscope", f"'{PROGRAM}'", 1), shell=True, check=True,
                       cwd=tmp_path, capture_output=True)
    assert (tmp_path / "lost-update.html").read_bytes() == page_of(made).read_bytes()


@pytest.mark.parametrize("old, new, same", [
    ("<script>", "<script>// another version\n", True),
    ("<style>", "<style>/* another version */", True),
    ('id="script" data-encoding="gzip+base64">', 'id="script" data-encoding="gzip+base64">A', True),
    ('id="analysis" data-encoding="gzip+base64">', 'id="analysis" data-encoding="gzip+base64">A', False),
    ("</title>", " 2</title>", False)])
def test_the_check_sees_data_and_text_alone(made, tmp_path, old, new, same):
    shutil.copytree(made, tmp_path / "here")
    page = page_of(tmp_path / "here")
    text = page.read_text(encoding="utf-8")
    assert old in text
    page.write_text(text.replace(old, new, 1), encoding="utf-8")
    before = page.read_bytes()
    done = stories("--check", "--pages", "--runs", tmp_path / "here/runs", "--out",
                   tmp_path / "here", "lost-update")
    assert done.returncode == (0 if same else 1), done.stderr
    assert ("reports/gallery/lost-update.html differs at character" in done.stdout) != same
    assert f"{1 if same else 0} of 1 files are the same" in done.stdout
    assert page.read_bytes() == before


def test_the_check_sees_another_number_of_a_story(tmp_path):
    out = tmp_path / "out"
    done = stories("--short", "--runs", tmp_path / "runs", "--out", out, "lost-update")
    assert done.returncode == 0, done.stderr
    file = out / "data/stories/lost-update.json"
    file.write_text(file.read_text(encoding="utf-8").replace('"swamped": 20', '"swamped": 21', 1),
                    encoding="utf-8")
    done = stories("--check", "--short", "--out", out, "lost-update")
    assert done.returncode == 1
    assert "data/stories/lost-update.json differs at character" in done.stdout
    assert "1 of 2 files are the same" in done.stdout


def test_a_run_on_a_gpu_is_a_page_as_soon_as_it_is_in_data(tmp_path):
    """Here an emulated run stands in for it, elsewhere."""
    folder = tmp_path / "data/cudnn-lenet"
    run("simulate", "lenet", "--precision", "mixed", "--loss-scale", "torch", "--steps", "20", "--out", folder / "log")
    (folder / "README.md").write_text("# A real run: cudnn-lenet\n", encoding="utf-8")
    done = stories("--pages", "--out", tmp_path, "cudnn-lenet")
    assert done.returncode == 0, done.stderr
    page = tmp_path / "reports/gallery/cudnn-lenet.html"
    assert "<title>A real run: cudnn-lenet</title>" in page.read_text(encoding="utf-8")
    (line,) = json.loads((tmp_path / "reports/gallery/pages.json").read_text(encoding="utf-8"))["cudnn-lenet"]
    subprocess.run(line.replace("halfscope", f"'{PROGRAM}'", 1), shell=True, check=True, cwd=tmp_path,
                   capture_output=True)
    assert (tmp_path / "cudnn-lenet.html").read_bytes() == page.read_bytes()
    assert stories("--check", "--pages", "--out", tmp_path, "cudnn-lenet").returncode == 0
    assert "no story 'cudnn-tinyssd'" in stories("--out", tmp_path, "cudnn-tinyssd").stderr
