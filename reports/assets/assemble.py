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
import pathlib
import re
import sys

import vl_convert


# Parts of each page's script, in this order, in a scope of their own.
SCRIPTS = {
    "page": ["data.js", "charts.js", "tables.js", "csv.js", "page.js"],
    "compare": ["data.js", "tables.js", "compare.js"],
}


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
    parts = "\n".join(read(part) for part in SCRIPTS[name])
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
