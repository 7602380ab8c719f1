"""The parts of a document below a heading that names another person (`DONOR LABS`, `Mother:`).

A part ends at the next heading. It is better to leave out facts of the patient than to publish
facts of another person.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence

from pipeline.clinical.page_text.lines import PrintedLine
from pipeline.providers.local.assertions.experiencer import person_kind
from pipeline.providers.local.text.zones import Zone
from pipeline.providers.schemas import Experiencer

_KIND = (
    r"(?:(?:the|his|her|patient['’]s|pt['’]s|potential|living|deceased|related|unrelated|organ"
    r"|kidney|liver|heart|lung|bone|marrow|stem|cell|blood|egg|sperm|biological|birth|twin|source"
    r"|close|household)[ -]+)*"
)
_NEWBORN = r"(?:newborn|neonat(?:e|al)|infant|baby|f(?:o?e)tus|f(?:o?e)tal)"
_PERSON = (
    r"(?:maternal|paternal|(?:mother|father)[ ]of[ ](?:the[ ])?(?:baby|child|patient)"
    rf"|mother|father|mom|dad|parents?|brother|sister|siblings?|twin|son"
    rf"|daughter|aunt|uncle|grand(?:mother|father|parents?)|wife|husband|spouse|partner|fianc[eé]e?"
    rf"|girlfriend|boyfriend|donor|surrogate|room-?mate|flat-?mate|house-?mate"
    rf"|(?:source|index|sick|close|household|known|sexual)[ ](?:patient|case|contact|partner)s?"
    rf"|(?P<newborn>{_NEWBORN}))"
)
_SECTION = (
    r"(?:labs?|laborator(?:y|ies)|results?|data|values?|history|hx|medical|surgical|obstetric(?:al)?"
    r"|social|past|prenatal|pregnancy|delivery|medications?|meds|vitals?|signs|allerg(?:y|ies)"
    r"|problems?|conditions?|diagnos[ie]s|serolog(?:y|ies)|screen(?:ing|s)?|exam(?:ination)?"
    r"|findings?|status|records?|summary|profile|tests?|testing|immunizations?|information|info"
    r"|list|blood|type|and|of|the|at|on|home|current)"
)
_HEADING = re.compile(
    rf"^[ \t•*#=_.\d)-]*{_KIND}{_PERSON}(?:['’]s|s['’])?(?P<rest>(?:[ /&-]+{_SECTION})*)"
    r"[ ]*(?:\([^()\n]{0,30}\))?[ ]*(?P<end>:|[ -]*$)",
    re.I,
)
_UMBRELLA = re.compile(r"(?:[ /&-]+(?:information|info|data|summary|profile|records?))*", re.I)
_TITLED = re.compile(r"^[ \t•*#=_-]*[A-Z][\w/&'’() -]{2,50}:[ ]*$")
_OWN = re.compile(
    r"^[ \t•*#=_-]*(?:the[ ])?(?:recipient|patient|pt|infant|newborn|baby|self)\b"
    r"(?:['’]s)?[ A-Za-z/]{0,40}:?[ ]*$",
    re.I,
)
"""A heading that returns to the patient."""
_ANY_PERSON = re.compile(rf"(?im)^[ \t•*#=_.\d)-]*{_KIND}{_PERSON}\b")
_BIRTH = re.compile(r"\bG\d+[ ]?P\d+|\bgravida|\bpostpartum|\bdelivered\b|\bcesarean", re.I)
_MOTHER = re.compile(r"\b(?:maternal|mother)", re.I)
"""A record that speaks of a birth, but of no mother, is the mother's record."""
_MARKS = " \t•*#=_.:-"
_MAX_HEADING = 70
_MAX_LINE = 400
_Part = tuple[int, int, Experiencer]


class PersonHeadings:
    """The parts of a document that are about another person."""

    def __init__(self, text: str, lines: Sequence[PrintedLine], sections: Sequence[Zone]) -> None:
        self._parts = _parts(lines, sections) if _ANY_PERSON.search(text) else []
        self._starts = [part[0] for part in self._parts]

    def at(self, offset: int) -> Experiencer | None:
        """Return the other person to whom `offset` belongs; None if no heading names a person."""
        index = bisect_right(self._starts, offset) - 1
        if index >= 0 and offset < self._parts[index][1]:
            return self._parts[index][2]
        return None


def _parts(lines: Sequence[PrintedLine], sections: Sequence[Zone]) -> list[_Part]:
    found: list[_Part] = []
    text = "\n".join(line.text for line in lines)
    is_newborns = _MOTHER.search(text) is not None or not _BIRTH.search(text)
    heads = [_heading(line.text) if len(line.text) <= _MAX_LINE else None for line in lines]
    for index, m in enumerate(heads):
        if m is None or (m["newborn"] and is_newborns):
            continue
        line = lines[index]
        person = person_kind(m.group())
        inline = m["end"] == ":" and line.text[m.end() :].strip()
        end = line.end
        if not inline or m["rest"]:
            is_umbrella = m.group().strip(_MARKS).isupper() and bool(_UMBRELLA.fullmatch(m["rest"]))
            end = _end(lines, index, sections, is_umbrella=is_umbrella)
        found.append((line.start, end, person))
    return found


def _heading(text: str) -> re.Match[str] | None:
    """Return the match of a heading with a person, not of a line of running text."""
    m = _HEADING.match(text)
    if m is None:
        return None
    words = m.group().strip(_MARKS)
    if m["end"] == ":" or words.isupper():
        return m
    return m if m["rest"] and len(words) <= _MAX_HEADING and words[:1].isupper() else None


def _end(
    lines: Sequence[PrintedLine], index: int, sections: Sequence[Zone], *, is_umbrella: bool
) -> int:
    """Return where the part below the heading at `index` ends.

    A part under an umbrella has sections of its own. Only a section in capitals or another person
    ends such a part.
    """
    limit = next(
        (
            section.start
            for section in sections
            if section.start > lines[index].end
            and (not is_umbrella or (section.heading or "").isupper())
        ),
        lines[-1].end,
    )
    for line in lines[index + 1 :]:
        if line.start >= limit:
            break
        is_titled = not is_umbrella and _TITLED.match(line.text)
        if is_titled or _OWN.match(line.text) or _heading(line.text):
            return line.start
    return limit
