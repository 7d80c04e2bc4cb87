# SPDX-License-Identifier: Apache-2.0
"""The package's entry points, for programs that look for them: as if it were installed."""
import tomllib

from program import ROOT


def write_entry_points(folder):
    """Writes the entry points of pyproject.toml into a folder for PYTHONPATH."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    info = folder / f"{project['name']}-{project['version']}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n")
    (info / "entry_points.txt").write_text("\n".join(
        line for group, points in project["entry-points"].items()
        for line in (f"[{group}]", *(f"{name} = {place}" for name, place in points.items()))))
    return folder
