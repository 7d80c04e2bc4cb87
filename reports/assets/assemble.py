# SPDX-License-Identifier: Apache-2.0
"""Puts the page's template, style, script and the Vega bundle of vl-convert into one file.

usage: assemble.py ASSETS PAGE OUT    (run by cmake/VegaBundle.cmake; PAGE: page or compare)

The content security policy names the hash of each script and of the style, so that nothing else
can run in the page, whatever the data says.
"""
import base64
import hashlib
import pathlib
import re
import sys

import vl_convert


# Parts of each page's script, in this order, in a scope of their own.
SCRIPTS = {
    "page": ["charts.js", "tables.js", "page.js"],
    "compare": ["tables.js", "compare.js"],
}


def source(text):
    """`</script` cannot stand inside a script element; `<\\/script` means the same in a string."""
    return re.sub(r"</(?=script)", r"<\\/", text, flags=re.IGNORECASE).replace("<!--", r"<\!--")


def hash_of(text):
    return "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"


def main(assets, name, out):
    def read(file):
        return (assets / file).read_text(encoding="utf-8")

    # In a block of its own the bundle's many short names stay off the page's global scope.
    vega = source("{" + vl_convert.javascript_bundle() + "}")
    parts = "\n".join(read(part) for part in SCRIPTS[name])
    script, style = source("(() => {\n'use strict';\n" + parts + "})();\n"), read("page.css")
    policy = "; ".join([
        "default-src 'none'",
        "script-src " + hash_of(vega) + " " + hash_of(script),
        "style-src " + hash_of(style),
        "img-src data: blob:",
        "base-uri 'none'",
        "form-action 'none'",
    ])
    page = read(f"{name}.html")
    for marker, text in [("POLICY", policy), ("STYLE", style),
                         ("LICENSE", read("vega-license.txt")), ("VEGA", vega),
                         ("SCRIPT", script)]:
        before, after = page.split(f"@{marker}@")
        page = before + text + after
    out.write_text(page, encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]), sys.argv[2], pathlib.Path(sys.argv[3]))
