# SPDX-License-Identifier: Apache-2.0
"""Checks includes against tools/rooms.txt: no include of a higher room, no cycle of files, no
unlisted room; and that reports, cli and python call only those functions of analyzers that are
listed there.

check_rooms.py [FOLDER]   prints each violation; exit code 1 if there is any
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
SOURCES = {".cpp", ".hpp", ".cu"}


def read_table(path):
    """Returns {room: its index, lowest first}, {layer: layers that it may include}, {entry}."""
    places, below, entries = {}, {}, {"name_of"}
    for line in path.read_text().splitlines():
        if line.startswith("layer "):
            layer, others = line.removeprefix("layer ").split(":")
            below[layer] = set(others.split()) | {layer}
        elif line.startswith("entry "):
            entries.update(line.split()[1:])
        elif line and not line.startswith("#"):
            places[line.split()[0]] = len(places)
    return places, below, entries


def read_includes(root, layers):
    """Returns {file: files that it includes}, for the project's own files, by paths under root."""
    files = {path.relative_to(root).as_posix(): path for layer in layers
             for path in (root / layer).rglob("*") if path.suffix in SOURCES}
    found = {}
    for name, path in sorted(files.items()):
        paths = re.findall(r'^#include "([^"]+)"', path.read_text(), re.MULTILINE)
        found[name] = [f"lib/{p}" if p.startswith("halfscope/") else p for p in paths]
    return found


def room_of(name):
    return name.rsplit("/", 1)[0]


def arrow_fault(file, included, places, below):
    """Returns the violation of one include as text. Empty if there is none."""
    layer, other = (name.split("/")[0] for name in (file, included))
    if other not in below[layer]:
        return f"{file} includes {included}: {layer} knows nothing of {other}"
    if other != layer:
        return ""
    here, there = room_of(file), room_of(included)
    if there not in places:
        return f"{file} includes {included}: {there} is not in tools/rooms.txt"
    if places[there] > places[here]:
        return f"{file} includes {included}: the arrow points up, from {here} to {there}"
    return ""


def without_ends(graph):
    """Returns the graph without the files from which no path leads to a cycle."""
    left = {file: set(others) for file, others in graph.items()}
    while ends := [file for file, others in left.items() if not others & left.keys()]:
        for end in ends:
            del left[end]
    return left


def cycles(includes):
    """Returns a message for each file that includes itself, directly or over other files."""
    leading = without_ends(includes)
    backward = {file: {other for other in leading if file in leading[other]} for file in leading}
    inside = without_ends(backward)
    return [f"{file} is in a cycle of files, by {', '.join(sorted(leading[file] & inside.keys()))}"
            for file in sorted(inside)]


def call_faults(root, places, entries):
    """Yields a message for each call of an analyzer that is not an entry."""
    rooms = {room.rsplit("/", 1)[-1] for room in places if room.startswith("analyzers")}
    call = re.compile(rf"\b(?:{'|'.join(rooms)})::((?:\w+::)*)([a-z]\w*)\(")
    for layer in ("reports", "cli", "python/src"):
        for path in sorted((root / layer).rglob("*.[ch]pp")):
            code = re.sub(r'//[^\n]*|"(?:[^"\\\n]|\\.)*"', "", path.read_text())
            for found in call.finditer(code):
                free = found[2] in entries or re.search(r"\b(?:frames|gates)::", found[0])
                if not free:
                    yield f"{path.relative_to(root)} calls {found[0]}): not an entry of tools/rooms.txt"


def faults(root):
    places, below, entries = read_table(ROOT / "tools/rooms.txt")
    includes = read_includes(root, below)
    found = [f"{file}: {room_of(file)} is not in tools/rooms.txt" for file in includes
             if room_of(file) not in places]
    for file, included in includes.items():
        if room_of(file) in places:
            found += filter(None, (arrow_fault(file, path, places, below) for path in included))
    return found + cycles(includes) + list(call_faults(root, places, entries))


def main():
    found = faults(pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT)
    for fault in found:
        print(f"rooms: {fault}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
