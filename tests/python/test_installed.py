# SPDX-License-Identifier: Apache-2.0
"""The package as it is installed, and what a machine is told that lacks something."""

import os
import pathlib
import shutil
import subprocess
import sys

import pytest

BUILD = pathlib.Path(os.environ["HALFSCOPE_PROGRAM"]).parent


def said(arguments, **options):
    return subprocess.run([str(word) for word in arguments], capture_output=True, text=True,
                          stdin=subprocess.DEVNULL, **options)


@pytest.fixture
def installed(root, tmp_path):
    """Where `pip install .` puts the package: the files as they are, and what CMake installs."""
    shutil.copytree(root / "python/halfscope", tmp_path / "halfscope")
    done = said(["cmake", "--install", BUILD, "--component", "python", "--prefix", tmp_path])
    assert done.returncode == 0, done.stderr
    return {**os.environ, "PYTHONPATH": str(tmp_path)}


def test_python_m_halfscope_is_the_program(installed, tmp_path, root):
    program = [sys.executable, "-m", "halfscope"]
    version = said([*program, "--version"], env=installed, cwd=tmp_path)
    assert (version.returncode, version.stdout) == (0, said([BUILD / "halfscope", "--version"]).stdout)
    page = tmp_path / "report.html"
    log = root / "data/digits-cnn/log"
    assert said([*program, "report", log, "--out", page], env=installed, cwd=tmp_path).returncode == 0
    assert page.read_text().rstrip().endswith("</html>")
    assert said([*program, "recommend", "nowhere"], env=installed, cwd=tmp_path).returncode == 1


def test_a_program_that_is_gone_is_named(installed, tmp_path):
    (tmp_path / "halfscope/bin/halfscope").unlink()
    gone = said([sys.executable, "-m", "halfscope", "info"], env=installed, cwd=tmp_path)
    assert gone.returncode == 1
    assert str(tmp_path / "halfscope/bin/halfscope") in gone.stderr and "pip install" in gone.stderr


@pytest.mark.parametrize("missing, option", [
    ("Eigen3 3.4", "-DCMAKE_DISABLE_FIND_PACKAGE_Eigen3=ON"),
    ("HWY", "-DCMAKE_DISABLE_FIND_PACKAGE_HWY=ON"),
    ("A C++ compiler", "-DHALFSCOPE_COMPILER=HALFSCOPE_COMPILER-NOTFOUND")])
def test_a_missing_library_names_what_installs_it(root, tmp_path, missing, option):
    environment = dict(os.environ)
    if "COMPILER" in option:
        only = tmp_path / "bin"
        only.mkdir()
        for name in ("cmake", "ninja"):
            (only / name).symlink_to(said(["which", name]).stdout.strip())
        environment = {"PATH": str(only), "HOME": str(tmp_path)}
    done = said(["cmake", "-G", "Ninja", "-S", root, "-B", tmp_path / "build", "-DHALFSCOPE_CUDA=OFF",
                 option], env=environment)
    message = " ".join(done.stderr.split())
    assert done.returncode == 1
    assert f"{missing} was not found. On Debian 12, ./run build installs all" in message
    assert "libeigen3-dev" in message and "libhwy-dev" in message


@pytest.mark.skipif(os.path.exists("/dev/nvidiactl"), reason="there is a GPU")
def test_a_machine_without_a_gpu_is_told_where_to_go(root, tmp_path):
    copy = tmp_path / "halfscope"  # has no bundle
    copy.mkdir()
    (copy / "run").write_bytes((root / "run").read_bytes())
    (copy / "tools").symlink_to(root / "tools")
    done = said(["bash", copy / "run", "gpu"])
    assert done.returncode == 3
    assert done.stderr.count("\n") == 1 and "nvcc" in done.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")
def test_fresh_is_roots(root):
    done = said(["setpriv", "--reuid=65534", "--clear-groups", "bash", root / "run", "fresh"])
    assert (done.returncode, done.stderr) == (3, "fresh: not run, needs root\n")
