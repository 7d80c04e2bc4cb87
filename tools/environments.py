# SPDX-License-Identifier: Apache-2.0
"""Virtual environments of the frameworks: one for each, made at its first use and kept."""

import dataclasses
import glob
import hashlib
import json
import os
import pathlib
import shutil
import subprocess


@dataclasses.dataclass(frozen=True)
class Environment:
    """The Python and the packages of one environment. `stands_on` names another environment whose
    packages are visible too: torch with CUDA is too large to install several times."""

    name: str
    python: str
    packages: tuple
    alone: tuple = ()  # packages installed without their dependencies
    stands_on: str = ""
    first: tuple = ()  # packages that must be installed before the others are built
    flags: tuple = ()  # options of pip
    settings: tuple = ()  # environment variables that its installation and its driver need

    def variables(self):
        ours = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
        return dict(ours, PYTHONNOUSERSITE="1", **dict(self.settings))


class NotInstalled(Exception):
    """Raised if an environment could not be made. Its text is the reason, in one line."""


def find_python(version):
    """Returns the Python of a version, from PATH, pyenv or uv. Raises NotInstalled."""
    name = f"python{version}"
    places = [shutil.which(name)]
    places += sorted(glob.glob(os.path.expanduser(f"~/.pyenv/versions/{version}.*/bin/{name}")))
    if shutil.which("uv"):
        found = subprocess.run(["uv", "python", "find", version], capture_output=True, text=True)
        places.append(found.stdout.strip())
    for place in places:
        # A shim of pyenv is on PATH even if its version is not active, so it must be run to find
        # out.
        if place and subprocess.run([place, "-c", ""], capture_output=True).returncode == 0:
            return place
    raise NotInstalled(f"needs Python {version}: none on PATH, in ~/.pyenv or known to uv")


def _stamp(environment, table):
    below = _stamp(table[environment.stands_on], table) if environment.stands_on else ""
    said = {key: value for key, value in dataclasses.asdict(environment).items() if value}
    text = json.dumps(said) + below
    return hashlib.sha256(text.encode()).hexdigest()


def _pip(environment, python, arguments):
    command = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    done = subprocess.run([*command, *environment.flags, *arguments], capture_output=True,
                          text=True, stdin=subprocess.DEVNULL, env=environment.variables())
    if done.returncode:
        errors = [line for line in done.stderr.splitlines() if "rror" in line]
        last = (errors or done.stderr.splitlines() or ["no word from pip"])[-1].strip()
        if "connection broken" in done.stderr:  # pip's later error only names a package
            last = "the package index cannot be reached"
        raise NotInstalled(f"{' '.join(arguments)}, Python {environment.python}: {last[:160]}")


def _see_packages_of(folder, below):
    """Adds the packages of another environment to the search path, after those of this one."""
    (packages,) = folder.glob("lib/python*/site-packages")
    (others,) = below.glob("lib/python*/site-packages")
    (packages / "stands_on.pth").write_text(f"{others}\n", encoding="utf-8")


def ensure(name, table, root, say):
    """Makes the environment unless it exists with the same packages. Returns its Python."""
    environment = table[name]
    folder = pathlib.Path(root) / name
    python, stamp = str(folder / "bin" / "python"), folder / "installed"
    if environment.stands_on:
        ensure(environment.stands_on, table, root, say)
    if stamp.exists() and stamp.read_text(encoding="utf-8") == _stamp(environment, table):
        return python
    packages = list(environment.packages + environment.alone)
    say(f"install {' '.join(packages)} by Python {environment.python}")
    made = subprocess.run([find_python(environment.python), "-m", "venv", "--clear", str(folder)],
                          capture_output=True, text=True)
    if made.returncode:
        raise NotInstalled(f"venv: {(made.stdout + made.stderr).strip().splitlines()[-1]}")
    if environment.stands_on:
        _see_packages_of(folder, pathlib.Path(root) / environment.stands_on)
    if environment.first:
        _pip(environment, python, list(environment.first))
    if environment.packages:
        _pip(environment, python, list(environment.packages))
    if environment.alone:
        _pip(environment, python, ["--no-deps", *environment.alone])
    stamp.write_text(_stamp(environment, table), encoding="utf-8")
    return python
