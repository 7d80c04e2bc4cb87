# SPDX-License-Identifier: Apache-2.0
"""Runs notebooks from their own folder and writes the outputs into them: ./run notebooks [FILE...].

The kernel is the Python that runs this file, independent of installed kernels. Only outputs change,
without times and versions, so that the same results produce the same files."""

import argparse
import json
import os
import pathlib
import sys
import tempfile

import nbclient
import nbformat

ROOT = pathlib.Path(__file__).resolve().parents[1]


def kernel_in(folder):
    """Makes a kernel in a folder. Returns its name, and the environment variables with which
    Jupyter finds it. The kernel has the built program on its PATH."""
    program = pathlib.Path(os.environ.get("HALFSCOPE_PROGRAM", ROOT / "build" / "halfscope"))
    kernel = pathlib.Path(folder) / "kernels" / "halfscope"
    kernel.mkdir(parents=True)
    (kernel / "kernel.json").write_text(json.dumps({
        "argv": [sys.executable, "-Xfrozen_modules=off", "-m", "ipykernel_launcher", "-f",
                 "{connection_file}"],
        "display_name": "halfscope", "language": "python",
        "env": {"PATH": f"{program.parent}{os.pathsep}{os.environ['PATH']}"}}))
    return kernel.name, {"JUPYTER_PATH": str(folder), "JUPYTER_RUNTIME_DIR": f"{folder}/runtime"}


def joined(outputs):
    """Joins adjacent pieces of one stream, because a kernel splits streams at random places."""
    whole = []
    for output in outputs:
        if whole and output.output_type == "stream" and whole[-1].get("name") == output.name:
            whole[-1].text += output.text
        else:
            whole.append(output)
    return whole


def executed(path, kernel):
    """Runs a notebook and returns it with its outputs; its metadata do not change."""
    notebook = nbformat.read(path, as_version=4)
    metadata = dict(notebook.metadata)
    nbclient.NotebookClient(notebook, timeout=600, kernel_name=kernel, record_timing=False,
                            resources={"metadata": {"path": str(path.parent)}}).execute()
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = joined(cell.outputs)
    notebook.metadata = nbformat.from_dict(metadata)
    return notebook


def main():
    parser = argparse.ArgumentParser(prog="./run notebooks", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=pathlib.Path, metavar="FILE",
                        default=sorted((ROOT / "notebooks").glob("*.ipynb")),
                        help="notebooks (default: all in notebooks/)")
    files = parser.parse_args().files
    with tempfile.TemporaryDirectory() as folder:
        kernel, variables = kernel_in(folder)
        os.environ |= variables
        for path in files:
            nbformat.write(executed(path.resolve(), kernel), path)
            print(f"== {path.name}", flush=True)


if __name__ == "__main__":
    main()
