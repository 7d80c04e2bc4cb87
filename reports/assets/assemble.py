# SPDX-License-Identifier: Apache-2.0
"""Puts the page's template, style, script and the Vega bundle of vl-convert into one file.

usage: assemble.py ASSETS PAGE OUT    (run by cmake/VegaBundle.cmake; PAGE: page or compare)

The content security policy names the hash of each script and of the style, so that nothing else
can run in the page, whatever the data says. The two large scripts are packed; the policy has their
hashes as they are once loader.js has unpacked them.
"""
import base64
import gzip
import hashlib
import json
import pathlib
import re
import sys

import vl_convert


# Parts of each page's script, in this order, in a scope of their own.
SCRIPTS = {
    "page": ["data.js", "draw.js", "charts.js", "tables.js", "csv.js", "page.js"],
    "compare": ["data.js", "draw.js", "tables.js", "compare.js"],
}
# Folders of charts/ that stand before them, beside that of the page's specifications.
SHARED = {"page": ["shared", "axes"], "compare": ["shared"]}


def read_all(folder):
    """{name: what NAME.json holds}"""
    return {file.stem: json.loads(file.read_text(encoding="utf-8"))
            for file in sorted(folder.glob("*.json"))}


def names_in(part):
    """The names that {"$": name} refers to."""
    if isinstance(part, dict):
        if "$" in part:
            yield part["$"]
        part = list(part.values())
    if isinstance(part, list):
        for inner in part:
            yield from names_in(inner)


def needed(pieces, parts):
    """The pieces that the parts refer to, and those that these refer to."""
    out, left = {}, set(names_in(parts))
    while left:
        name = left.pop()
        if name in pieces and name not in out:
            out[name] = pieces[name]
            left.update(names_in(pieces[name]))
    return out


def charts(folder, name):
    """The specifications of a page and what they share, as JavaScript."""
    specs = read_all(folder / name)
    shared = {file: part for more in SHARED[name] for file, part in read_all(folder / more).items()}
    pieces = shared.pop("pieces")
    shared["pieces"] = needed(pieces, [specs, shared])
    texts = (json.dumps(part, separators=(",", ":")) for part in (specs, shared))
    return "const SPECS = {};\nconst SHARED = {};".format(*texts)


def packed(text):
    """As reports/page/island.cpp packs data; without a time, so that the same text packs the same."""
    return base64.b64encode(gzip.compress(text.encode(), 9, mtime=0)).decode()


def hash_of(text):
    return "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"


def main(assets, name, out):
    def read(file):
        return (assets / file).read_text(encoding="utf-8")

    # In a block of its own the bundle's many short names stay off the page's global scope.
    vega = "{" + vl_convert.javascript_bundle() + "}"
    parts = "\n".join([charts(assets / "charts", name), *map(read, SCRIPTS[name])])
    script, style = "(() => {\n'use strict';\n" + parts + "})();\n", read("page.css")
    loader = read("loader.js")
    if re.search(r"</script|<!--", loader, flags=re.IGNORECASE):
        raise SystemExit("loader.js holds what would end its element")
    policy = "; ".join([
        "default-src 'none'",
        "script-src " + " ".join(map(hash_of, [loader, vega, script])),
        "style-src " + hash_of(style),
        "img-src data: blob:",
        "base-uri 'none'",
        "form-action 'none'",
    ])
    page = read(f"{name}.html")
    for marker, text in [("POLICY", policy), ("STYLE", style),
                         ("LICENSE", read("vega-license.txt")), ("VEGA", packed(vega)),
                         ("SCRIPT", packed(script)), ("LOADER", loader)]:
        before, after = page.split(f"@{marker}@")
        page = before + text + after
    out.write_text(page, encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]), sys.argv[2], pathlib.Path(sys.argv[3]))
