"""Read the status, onset, severity and place of a condition from its evidence, as printed.

Every reading is tied to the mention. A text with two answers, a denied condition, and a condition
of another person have no status, no severity and no onset here. `certainty: hypothetical` counts
as `unconfirmed`: FHIR has no status for a condition that only may come, and nothing weaker.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from pipeline.clinical import condition_words as words
from pipeline.clinical.evidence import Evidence
from pipeline.clinical.facts import EntityFacts

_LONGEST = 400
"""The most characters on each side that are read."""
_STATUS_COLUMN = re.compile(r"(?:clinical[ ])?(?:status|state)|active\??|current\??", re.I)
_SEVERITY_COLUMN = re.compile(r"severity|grade", re.I)
_ONSET_COLUMN = re.compile(r"(?:date[ ]of[ ])?onset(?:[ ]date)?|date[ ]of[ ]onset", re.I)
_END_COLUMN = re.compile(
    r"(?:date[ ])?resolved(?:[ ](?:on|date))?|resolution(?:[ ]date)?|abatement(?:[ ]date)?", re.I
)
_ENDS = re.compile(r"\b(?:resolution|resolv(?:ed|es|ing)|remission)\b", re.I)
_AGAIN = re.compile(r"\b(?:recur\w*|relaps\w*|return(?:ed|s)?|c[ao]mes?[ ]back)\b", re.I)
_TWO_SIDES = re.compile(
    r"\b(?:left|right)[ ]*(?:and[ ](?:left|right)|or|/|>|<|&|greater[ ]than|more[ ]than"
    r"|worse[ ]than)",
    re.I,
)
_ABOVE = 40
"""The most lines between an item and the heading of its list."""


def is_of_patient(facts: EntityFacts) -> bool:
    """Return whether nothing gives the entity to another person."""
    return facts.experiencer in (None, "patient") and facts.zone_type != "family_history"


def read_condition(facts: EntityFacts, evidence: Evidence) -> dict[str, str]:
    """Return the attributes of `FoundAttributes` that the evidence states about a condition."""
    if not is_of_patient(facts):
        # A denial is safe for each person; every other attribute is about the patient.
        return {"verification": "refuted"} if facts.negated else {}
    found = dict(_place(facts, evidence))
    verification = _verification(facts, evidence)
    if verification:
        found["verification"] = verification
    if verification == "entered-in-error":
        return found
    if facts.negated:
        # A condition that ends, or does not come back, was there: the structurer flags that.
        near = f"{evidence.before[-40:]} {evidence.after[:40]}"
        if _ENDS.search(near):
            found["status"] = "resolved"
        elif _AGAIN.search(near):
            found["status"] = "recurrence"
        return found
    if facts.certainty != "hypothetical" and (grade := severity_of(facts, evidence)):
        found["severity"] = grade
    if facts.certainty in ("possible", "hypothetical"):
        return found
    status = status_of(facts, evidence)
    if status:
        found["status"] = status
    if status not in ("recurrence", "relapse", "remission") and (start := _onset(facts, evidence)):
        found["start"] = start
    if status == "resolved" and (stop := _end(facts, evidence)):
        found["stop"] = stop
    return found


def status_of(facts: EntityFacts, evidence: Evidence) -> str | None:
    """Return the clinical status that the text states; None if the text states none or several."""
    stated = set(statuses_of(facts, evidence))
    if len(stated) != 1:
        return None if stated or not _is_present(facts, evidence) else "active"
    return stated.pop()


def statuses_of(facts: EntityFacts, evidence: Evidence) -> frozenset[str]:
    """Return every clinical status that a phrase of the evidence states."""
    own = frozenset(_statuses(facts, evidence))
    # The heading of a list speaks of the items that say nothing themselves.
    return own or frozenset(_named(_list_heading(evidence)))


def _statuses(facts: EntityFacts, evidence: Evidence) -> Iterator[str]:
    before, inside, after = _parts(facts, evidence)
    said = f"{before}{inside[0]}"
    ahead = _clause_before(said)
    is_unsure = words.UNSURE_AHEAD.search(_last(evidence.sentence, evidence, said)) is not None
    for status, pattern in words.AHEAD:
        m = pattern.search(ahead)
        if m and not words.UNSURE_AHEAD.search(ahead[: m.start("cue")][-40:]):
            yield status
    behind = _behind(inside, after, evidence)
    for status, pattern in words.BEHIND:
        m = pattern.match(behind)
        if m and not is_unsure and not words.UNSURE_BEHIND.match(m["rest"]):
            yield status
    yield from _cell_statuses(evidence)


def _cell_statuses(evidence: Evidence) -> Iterator[str]:
    for head, cell in evidence.cells:
        if _STATUS_COLUMN.fullmatch(head) or not head:
            low = cell.strip(" .").lower()
            if low in ("active", "inactive", "resolved", "in remission", "remission", "relapse"):
                yield low.removeprefix("in ")


def _named(heading: str) -> Iterator[str]:
    named = [status for status, pattern in words.HEADINGS if pattern.search(heading)]
    if len(named) == 1:
        yield named[0]


def _list_heading(evidence: Evidence) -> str:
    """Return the nearest heading of a list of problems above the row, without text between."""
    above = evidence.shown.above[0] if evidence.shown and evidence.shown.above else ""
    lines = above.split("\n")[:-1]
    for line in reversed(lines[-_ABOVE:]):
        plain = line.strip()
        if words.PROBLEM_HEADING.fullmatch(plain):
            return plain
        if plain.endswith(":") or (plain.isupper() and len(plain) > 4) or len(plain) > 100:
            return ""
    return ""


def _is_present(facts: EntityFacts, evidence: Evidence) -> bool:
    """Return whether Pass 1 read a present condition and no word of the sentence doubts that."""
    if facts.temporality != "current" or facts.negated:
        return False
    if facts.certainty not in (None, "certain") or not evidence.sentence:
        return False
    return words.NOT_PRESENT.search(evidence.sentence) is None


def _verification(facts: EntityFacts, evidence: Evidence) -> str | None:
    if _is_in_error(facts, evidence):
        return "entered-in-error"
    if facts.negated:
        # `Not confirmed` is no denial; the structurer flags the contradiction to Pass 1.
        is_open = words.UNPROVEN.search(f"{evidence.before[-40:]} {evidence.after[:40]}")
        return "unconfirmed" if is_open else "refuted"
    if facts.certainty == "hypothetical":
        return "unconfirmed"
    if facts.certainty == "possible":
        said = evidence.sentence
        kinds = [kind for kind, pattern in words.POSSIBILITIES if pattern.search(said)]
        return kinds[0] if len(kinds) == 1 else "unconfirmed"
    if facts.certainty == "certain":
        return "confirmed"
    before, inside, after = _parts(facts, evidence)
    near = f"{_clause_before(before + inside[0])[-30:]} {inside[1]}{after[:30]}"
    is_confirmed = words.CONFIRMED.search(near) and not words.UNSURE_AHEAD.search(near)
    return "confirmed" if is_confirmed else None


def _is_in_error(facts: EntityFacts, evidence: Evidence) -> bool:
    if facts.status == "entered_in_error":
        return True
    above = evidence.shown.above[0] if evidence.shown and evidence.shown.above else ""
    if above[above.rfind("\n") + 1 :].count("~~") % 2 == 1:
        return True
    said = f"{evidence.after} {' '.join(cell for _, cell in evidence.cells)}"
    return words.IN_ERROR.search(said[:_LONGEST]) is not None


def severity_of(facts: EntityFacts, evidence: Evidence) -> str | None:
    """Return the severity that is printed for this mention; None for two grades or a range."""
    before, inside, after = _parts(facts, evidence)
    ahead = _clause_before(before + inside[0])
    found: set[str] = set()
    if m := words.GRADE_AHEAD.search(ahead):
        found.add(m["grade"].lower())
    if m := words.GRADE_BEHIND.match(_behind(inside, after, evidence)):
        found.add(m["grade"].lower())
    for head, cell in evidence.cells:
        if _SEVERITY_COLUMN.fullmatch(head):
            found |= {g.group().lower() for g in words.GRADES.finditer(cell)}
    quoted = {g.group().lower() for g in words.GRADES.finditer(evidence.quote)}
    found |= quoted
    near = f"{_clause_before(before)[-60:]}{evidence.quote}{after[:60]}"
    if words.GRADE_RANGE.search(near) or len(found) != 1:
        return None
    return found.pop()


def _place(facts: EntityFacts, evidence: Evidence) -> Iterator[tuple[str, str]]:
    before, _, after = _parts(facts, evidence)
    mention = evidence.quote
    ahead = _clause_before(before)
    sides = {_side(m) for m in words.SIDE.finditer(mention)}
    if m := words.SIDE_AHEAD.search(ahead):
        sides.add(_side(m))
    if m := words.SIDE_BEHIND.match(after):
        sides.add(_side(m))
    around = f"{before[-30:]}{mention}{after[:40]}"
    named = {side for side in ("left", "right") if re.search(rf"\b{side}\b", around, re.I)}
    if len(sides) == 1 and not _TWO_SIDES.search(around) and len(named) < 2:
        yield "laterality", sides.pop()
    sites = {m.group().lower(): m.group() for m in words.SITE_IN.finditer(mention)}
    if m := words.SITE_BEHIND.match(after):
        sites[m["site"].lower()] = m["site"]
    if len(sites) == 1:
        yield "body_site", next(iter(sites.values()))


def _side(m: re.Match[str]) -> str:
    low = m["side"].lower()
    return low if low in ("left", "right") else "bilateral"


def _onset(facts: EntityFacts, evidence: Evidence) -> str | None:
    before, inside, after = _parts(facts, evidence)
    behind = _behind(inside, after, evidence)
    found = [m["printed"] for p in (words.SINCE,) if (m := p.match(behind))]
    # The length of a treatment for a symptom is not the length of the symptom.
    is_dosed = words.DOSED.search(f"{before} {after}") or before.rstrip().endswith((" for", "PRN"))
    lasting = None if is_dosed or facts.category != "symptom" else words.LASTING.match(behind)
    if lasting and not words.GONE.match(behind, lasting.end()):
        found.append(lasting["printed"])
    ahead = _clause_before(before + inside[0])
    is_event = facts.temporality == "historical" and not words.NOT_ITS_DAY.search(ahead)
    if is_event and (m := words.HAPPENED.match(behind)):
        found.append(m["printed"])
    if m := words.HISTORY_AHEAD.search(ahead):
        found.append(m["printed"])
    for head, cell in evidence.cells:
        if _ONSET_COLUMN.fullmatch(head):
            found.append(cell)
    return found[0].strip() if len(found) == 1 else None


def _end(facts: EntityFacts, evidence: Evidence) -> str | None:
    _, inside, after = _parts(facts, evidence)
    found = [cell for head, cell in evidence.cells if _END_COLUMN.fullmatch(head)]
    resolved = dict(words.BEHIND)["resolved"]
    m = resolved.match(_behind(inside, after, evidence))
    if m and (end := words.ENDED.match(m["rest"])):
        found.append(end["printed"])
    return found[0].strip() if len(found) == 1 else None


def _parts(facts: EntityFacts, evidence: Evidence) -> tuple[str, tuple[str, str], str]:
    """Return the text before, the words of the quote around the name, and the text behind."""
    quote = evidence.quote.replace("\n", " ")
    at = quote.lower().find(facts.name.lower())
    inside = (quote[:at], quote[at + len(facts.name) :]) if at >= 0 else ("", "")
    return evidence.before[-_LONGEST:], inside, evidence.after[:_LONGEST]


def _behind(inside: tuple[str, str], after: str, evidence: Evidence) -> str:
    """Return the words behind the mention, if nothing else can be their subject."""
    if evidence.entity_before and words.GOVERNED.fullmatch(evidence.before):
        return inside[1]
    return f"{inside[1]}{after}"


def _clause_before(text: str) -> str:
    """Return the words in front of the mention that no comma and no stop parts from the mention."""
    return re.split(r"[,;:()\[\]]|(?<=[a-z])\.(?=[ ])|[ ][-–—][ ]", text)[-1]


def _last(sentence: str, evidence: Evidence, said: str) -> str:
    """Return the clause of the sentence in front of the mention, entities before it included."""
    at = sentence.find(evidence.quote.replace("\n", " "))
    return re.split(r";|,[ ](?:but|and)[ ]", sentence[:at] if at >= 0 else said)[-1]
