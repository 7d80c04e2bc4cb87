# SPDX-License-Identifier: Apache-2.0
"""The README's examples are the ones that run."""

import re

from program import ROOT, stdout_of

README = (ROOT / "README.md").read_text()


def block(language):
    return re.search(rf"```{language}\n(.*?)```", README, re.DOTALL).group(1)


def test_cpp_example_is_the_one_ctest_runs():
    example = (ROOT / "docs" / "examples" / "first.cpp").read_text()
    assert example.endswith(block("cpp"))


def test_python_example_records_a_log(tmp_path, monkeypatch):
    import torch

    import halfscope

    monkeypatch.chdir(tmp_path)
    torch.manual_seed(0)
    model = torch.nn.Linear(4, 2)
    names = {
        "model": model,
        "optimizer": torch.optim.SGD(model.parameters(), lr=0.1),
        "batches": [(torch.randn(8, 4), torch.randint(2, (8,))) for _ in range(3)],
        "loss_of": torch.nn.functional.cross_entropy,
    }
    exec(block("python"), names)
    findings = halfscope.analyze(str(tmp_path / "runs" / "mine"))
    assert {"weight_grad", "activation_grad"} <= {t["role"] for t in findings["tensors"]}


def test_links_lead_somewhere():
    for target in re.findall(r"\]\(([^)#:]+)\)", README):
        assert (ROOT / target).exists(), target


def test_the_output_shown_is_the_programs():
    shown = re.search(r"<!-- recommend output -->\n```\n\$ halfscope (.*?)\n(.*?)```", README, re.S)
    assert shown.group(2) == stdout_of(*shown.group(1).split(), cwd=ROOT)
