# SPDX-License-Identifier: Apache-2.0
"""Adds up JUnit files: prints one line 'N passed, N failed, N skipped' and exits 1 on a failure.

Usage: count_tests.py [--failed N] FILE.xml...     --failed: failures that no file records
A file that is missing or cannot be read counts as one failure: its tests did not report.
"""

import argparse
import sys
import xml.etree.ElementTree as ElementTree


def count(path):
    """Returns (passed, failed, skipped) of one JUnit file."""
    passed = failed = skipped = 0
    for case in ElementTree.parse(path).iter("testcase"):
        if case.find("failure") is not None or case.find("error") is not None:
            failed += 1
        elif case.find("skipped") is not None or case.get("status") in ("notrun", "disabled"):
            skipped += 1
        else:
            passed += 1
    return passed, failed, skipped


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--failed", type=int, default=0)
    parser.add_argument("files", nargs="+")
    options = parser.parse_args()

    totals = [0, options.failed, 0]
    for path in options.files:
        try:
            counts = count(path)
        except (OSError, ElementTree.ParseError) as error:
            print(f"{path}: no test results: {error}", file=sys.stderr)
            counts = (0, 1, 0)
        totals = [total + more for total, more in zip(totals, counts)]
    print("{} passed, {} failed, {} skipped".format(*totals))
    return 1 if totals[1] or not totals[0] else 0


if __name__ == "__main__":
    sys.exit(main())
