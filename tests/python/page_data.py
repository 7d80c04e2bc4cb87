# SPDX-License-Identifier: Apache-2.0
"""The data blocks of a page, read without a browser: as reports/assets/loader.js and data.js do."""
import base64
import gzip
import json
import re


def blocks(text):
    """{id: what a packed block of the page holds}"""
    found = re.findall(r'id="(\w+)" data-encoding="gzip\+base64">([^<]*)</script>', text)
    return {name: gzip.decompress(base64.b64decode(block)) for name, block in found}


def rows_of(value):
    """Lists of objects are packed as columns."""
    if isinstance(value, list):
        return [rows_of(element) for element in value]
    if not isinstance(value, dict):
        return value
    if "@columns" not in value:
        return {field: rows_of(element) for field, element in value.items()}
    lists = {field: rows_of(column) for field, column in value["@columns"].items()}
    return [dict(zip(lists, row)) for row in zip(*lists.values())]


def data_of(text, name):
    return rows_of(json.loads(blocks(text)[name]))
