# SPDX-License-Identifier: Apache-2.0
"""The data inside a page: packed blocks, lists of equal objects as columns."""
import base64
import gzip
import json
import re


def packed(page):
    """{id: what a packed block holds}"""
    found = re.findall(r'id="(\w+)" data-encoding="gzip\+base64">([^<]*)</script>', page.read_text())
    return {name: gzip.decompress(base64.b64decode(text)) for name, text in found}


def rows(value):
    """A list of objects in place of its columns, throughout."""
    if isinstance(value, list):
        return [rows(element) for element in value]
    if not isinstance(value, dict):
        return value
    if set(value) == {"@columns"}:
        columns = {field: rows(column) for field, column in value["@columns"].items()}
        return [dict(zip(columns, row)) for row in zip(*columns.values())]
    return {field: rows(element) for field, element in value.items()}


def data(page, name):
    """The JSON of one block."""
    return rows(json.loads(packed(page)[name]))
