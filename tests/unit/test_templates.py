"""The shape of the templates: short lines, one tag or control structure on each, no dead file."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TEMPLATES = sorted((ROOT / "templates").rglob("*.html"))
LONGEST = 120
CONTROL = re.compile(r"\{% (?:if|for|with|block|card|term|comment) ")
BLOCKS = re.compile(
    r"<(?:caption|dd|details|dialog|div|dl|dt|form|h[1-6]|li|nav|ol|option|p|pre|section|select"
    r"|summary|svg|table|tbody|td|template|th|thead|tr|ul)[\s>{]"
)


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_line_is_short_and_holds_one_tag_or_control_structure(template: Path) -> None:
    faults = []
    for number, line in enumerate(template.read_text("utf-8").splitlines(), 1):
        if len(line) > LONGEST:
            faults.append(f"{number}: {len(line)} characters")
        if len(CONTROL.findall(line)) > 1:
            faults.append(f"{number}: more than one control structure")
        if len(BLOCKS.findall(line)) > 1:
            faults.append(f"{number}: more than one block element")

    assert faults == []


def test_each_template_of_the_console_is_used() -> None:
    sources = [*TEMPLATES, *(ROOT / "observability").rglob("*.py")]
    text = "\n".join(path.read_text("utf-8") for path in sources)
    console = [path for path in TEMPLATES if path.parent.is_relative_to(ROOT / "templates/console")]

    names = {str(path.relative_to(ROOT / "templates")) for path in console}
    assert {name for name in names if f'"{name}"' not in text} == set()
