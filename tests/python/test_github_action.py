# SPDX-License-Identifier: Apache-2.0
"""The GitHub Action: its script, with the built program in place of the installed one, and the form
of action.yml."""
import re
import shutil
import subprocess

import pytest

from program import DIGITS, PROGRAM, ROOT, stdout_of

ACTION = ROOT / ".github/actions/halfscope"
yaml = pytest.importorskip("yaml")


@pytest.fixture
def check(tmp_path):
    """A function that runs the action's script and returns (exit code, stdout, summary)."""
    bin = tmp_path / "bin"
    bin.mkdir()
    (bin / "halfscope").symlink_to(PROGRAM)

    def run(logs, conditions="", **inputs):
        summary, output = tmp_path / "summary", tmp_path / "output"
        summary.write_text("")
        done = subprocess.run(
            [ACTION / "check.sh"], capture_output=True, text=True, timeout=60, cwd=tmp_path,
            env={"PATH": f"{bin}:/usr/bin:/bin", "GITHUB_STEP_SUMMARY": str(summary),
                 "GITHUB_OUTPUT": str(output), "RUNNER_TEMP": str(tmp_path), "LOGS": str(logs),
                 "FAIL_IF": conditions, **inputs})
        assert done.stderr == ""
        return done.returncode, done.stdout, summary.read_text()

    return run


def test_the_summary_is_the_report(check, tmp_path):
    code, said, summary = check(f"{DIGITS}\n", TITLE="Nightly run")
    stdout_of("report", DIGITS, "--title", "Nightly run", "--out", tmp_path / "expected.md")
    assert (code, said, summary) == (0, "", (tmp_path / "expected.md").read_text())
    assert "# Nightly run" in summary
    assert (tmp_path / "output").read_text() == f"report={tmp_path}/halfscope.md\n"


def test_conditions_of_analyze_and_recommend_are_tested_each(check):
    code, said, summary = check(DIGITS, "nan > 0\n\n  updates_lost >= 40%  \nstatic_scale < 4\nheadroom_bits < 2\n")
    assert code == 4 and summary
    lines = said.splitlines()
    assert lines[0] == "Halfscope: 'nan > 0' does not hold"
    assert re.fullmatch(r"::error title=Halfscope::.*: tensor 'weight/conv1.weight': updates_lost 89 of 216 "
                        r"\(41.2 %25\) >= 40 %25", lines[1])
    assert lines[2] == "Halfscope: 'static_scale < 4' does not hold"
    assert "headroom_bits 1.24" in lines[3] and len(lines) == 4


def test_options_reach_analyze_and_the_report(check):
    condition = "flushed_to_zero > 10% for activation_grad"
    assert check(DIGITS, condition)[0] == 4
    assert check(DIGITS, condition, OPTIONS="--loss-scale 32768")[0] == 0


def test_an_unknown_condition_is_an_error_even_beside_a_violation(check):
    for conditions in ("nan >= 0\nunderflows > 3", "underflows > 3\nnan >= 0"):
        code, said, _ = check(DIGITS, conditions)
        assert code == 2
        assert said.count("unknown field 'underflows'") == 2  # of analyze, and of recommend
        assert said.count("nan 0 >= 0") > 1


@pytest.mark.parametrize("logs, code, text", [
    ("", 2, "input logs is empty; expected a path or a glob on each line"),
    ("nowhere/*\n", 2, "'nowhere/*' (input logs) is no file or folder; expected a path or a glob on each line"),
    (ROOT / "CMakePresets.json", 1, "CMakePresets.json: "),
])
def test_bad_logs_are_an_error_of_one_line(check, logs, code, text):
    found, said, summary = check(logs)
    assert found == code and summary == ""
    assert said.startswith("::error title=Halfscope::") and text in said and said.count("\n") == 1


def test_a_glob_and_a_name_with_blanks(check, tmp_path):
    for name in ("runs/a b", "runs/c"):
        shutil.copytree(DIGITS, tmp_path / name)
    code, said, summary = check("runs/*", "updates_lost >= 40% for weight/conv1.weight")
    assert code == 4 and "::runs/a b: " in said and "::runs/c: " in said
    assert "runs/a b" in summary and "runs/c" in summary


def test_action_yml_declares_what_it_uses():
    action = yaml.safe_load((ACTION / "action.yml").read_text())
    steps = action["runs"]["steps"]
    assert action["runs"]["using"] == "composite"
    assert all(step["shell"] == "bash" and step["run"].strip() for step in steps)
    assert not any("${{" in step["run"] for step in steps)  # inputs come as variables: no injection
    text = (ACTION / "action.yml").read_text()
    assert set(re.findall(r"inputs\.([\w-]+)", text)) == set(action["inputs"])
    script = (ACTION / "check.sh").read_text()
    for step in steps:
        for name in step.get("env", {}):
            assert f"${{{name}:-" in (step["run"] + script)


@pytest.mark.skipif(not shutil.which("shellcheck"), reason="shellcheck is not installed")
def test_shellcheck_finds_nothing():
    subprocess.run(["shellcheck", ACTION / "check.sh"], check=True)
    runs = [step["run"] for step in yaml.safe_load((ACTION / "action.yml").read_text())["runs"]["steps"]]
    subprocess.run(["shellcheck", "--shell=bash", "-"], input="\n".join(runs), text=True, check=True)
