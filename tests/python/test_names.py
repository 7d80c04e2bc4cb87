# SPDX-License-Identifier: Apache-2.0
"""Every C++ test case is a test of CTest: its discovery splits at semicolons and brackets."""
import re
import subprocess

from program import BUILD


def test_names_of_test_cases_are_names_for_ctest():
    listed = subprocess.run(["ctest", "-N"], cwd=BUILD, capture_output=True, text=True, check=True)
    known = set(re.findall(r"Test +#\d+: (.*)", listed.stdout))
    programs = sorted((BUILD / "bin").glob("test_*"))
    assert programs
    for program in programs:
        names = subprocess.run([program, "--list-test-names-only", "~[.]"], capture_output=True,
                               text=True).stdout.splitlines()
        assert names
        folder = program.name.removeprefix("test_")
        prefixes = (folder + ":", folder + ": ")
        lost = [n for n in names if not any(prefix + n in known for prefix in prefixes)]
        assert not lost, f"{program.name}: {lost[:3]}"
