"""The scan for cues tries a pattern only where it can match, and misses no cue by that."""

from __future__ import annotations

import re

import pytest

from pipeline.providers.local.assertions.cue_beginnings import ANY, alternatives, beginnings
from pipeline.providers.local.assertions.cues import cue_rows, cues_in
from tests.support.generator.kinds import all_cases


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        (r"\bno\b", {"no"}),
        (r"\b(?:if|unless)[ ]x", {"if", "un"}),
        (r"(?:was[ ])?ruled", {"wa", "ru"}),
        (r"[,;]x?(?!y)z", {",x", ",z", ";x", ";z"}),
        (r"\?[ ]?(?=[a-z])", {"?", "? "}),
        (r"\d+(?:st|nd)", {ANY + ANY, ANY + "s", ANY + "n"}),
        (r"[^.]{0,3}a", {ANY + ANY, ANY + "a", "a"}),
        (r"(?<!not[ ])(?P<a>x|y{2})", {"x", "yy"}),
        (r"\(-\)", {"(-"}),
    ],
)
def test_the_beginnings_of_a_pattern_are_read_from_its_syntax(
    pattern: str, expected: set[str]
) -> None:
    assert expected <= beginnings(pattern)


def test_a_pattern_is_split_only_at_its_outer_bars() -> None:
    assert alternatives(r"a|(?:b|c)|[|]|\|") == ["a", "(?:b|c)", "[|]", r"\|"]


def test_the_scan_finds_the_same_cues_as_trying_every_pattern_everywhere() -> None:
    patterns = [(kind, re.compile(row, re.I)) for kind, row in cue_rows()]
    texts = [case.text for case in all_cases(460, 3) if case.kind.startswith("sentence")]

    for text in texts:
        found, at = [], 0
        while at < len(text):
            inside = text[at].isalnum() and at > 0 and text[at - 1].isalnum()
            matches = ((kind, p.match(text, at)) for kind, p in patterns)
            first = None if inside else next(((k, m.end()) for k, m in matches if m), None)
            if first is not None:
                found.append((at, first[1], first[0]))
            at = first[1] if first else at + 1
        assert [tuple(cue) for cue in cues_in(text)] == found
