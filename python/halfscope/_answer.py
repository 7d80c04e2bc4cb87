# SPDX-License-Identifier: Apache-2.0
"""A recommendation in a notebook or a shell: the sentences of the answer, laid out."""

import re


def _escaped(text):
    return re.sub(r"([\\`*_\[\]<>|#~&])", r"\\\1", text)


class Recommendation(dict):
    """The structure of `halfscope recommend --json`. Printed, it is the answer and all findings."""

    def _first(self):
        """The headline with its action, and the sentence on the loss scale."""
        answer = self["answer"]
        lead = " ".join(filter(None, (answer["headline"], answer.get("action"))))
        return [lead] if answer["headline"] == answer["scale"] else [lead, answer["scale"]]

    def _said(self):
        answer = self["answer"]
        found = [" ".join(filter(None, (finding["title"], finding.get("action"))))
                 for finding in answer["findings"]]
        return ([answer["clear"]] if "clear" in answer else []) + found

    def __str__(self):
        lines = self["answer"].get("paste")
        paste = ["", *(f"  {line}" for line in lines.splitlines()), ""] if lines else []
        return "\n".join([*self._first(), *paste, *(f"* {said}" for said in self._said())])

    def _repr_markdown_(self):
        headline, *rest = self._first()
        lines = self["answer"].get("paste")
        paste = [f"```python\n{lines}\n```"] if lines else []
        said = "\n".join(f"* {_escaped(text)}" for text in self._said())
        return "\n\n".join([f"**{_escaped(headline)}**", *map(_escaped, rest), *paste, said])
