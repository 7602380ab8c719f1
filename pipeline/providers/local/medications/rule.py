"""Medications with dose, route and frequency, including misspelt and unlisted names."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import cache, lru_cache

from pipeline.clinical.medications.sig import Amount, dose_before, kind_of, salt_end
from pipeline.providers.local.document_state import DocumentState
from pipeline.providers.local.finding import Finding, own_words
from pipeline.providers.local.medications.cues import (
    CHANGE_BEFORE,
    LIMIT_BEFORE,
    TAKES,
    TITRATE_BEFORE,
    State,
)
from pipeline.providers.local.medications.doubts import (
    ALL_OFF,
    has_doubt,
    is_dosed_again,
    is_fraction_open,
)
from pipeline.providers.local.medications.findings import in_state, is_set_aside, of_steps
from pipeline.providers.local.medications.parts import Directions, DoseStep, Tense
from pipeline.providers.local.medications.states import (
    is_above_lone_state,
    is_administration,
    is_below_open_heading,
    is_heading,
    state_of,
)
from pipeline.providers.local.medications.steps import read_directions
from pipeline.providers.local.names.lexicon import Term, TermMatch, lexicon
from pipeline.providers.local.names.word_lists import concepts_of_drugs, words

_CONTINUED = re.compile(
    r"(?:(?<=;)[ ]*(?=\d|(?:days?|weeks?)[ ]\d)|(?<=;)[ ]*(?=(?:then|increase|decrease|reduce"
    r"|change|titrate)\b)"
    r"|:?[ ]*\n[ ]*(?:[-•*·][ ]*|\d[.)][ ]+)?(?=\d[\d.,/-]*[ ]?(?:mg|mcg|units?|mEq|g|mL|puffs?"
    r"|tab(?:let)?s?|cap(?:sule)?s?)\b(?![ ]?/))"
    r"|[.;]?[ ]*\n?[ ]*(?=(?:Sig:?[ ]|Take[ ]|Inject[ ]|Inhale[ ]|Apply[ ]|Instill[ ]|Place[ ]"
    r"|Chew[ ]"
    r"|Dissolve[ ]|Use[ ]\d|Then[ ]|(?:Dose[ ](?:was[ ])?)?(?:increased?|decreased?|reduced?"
    r"|changed?)"
    r"[ ](?:dose[ ])?to[ ]\d)))(?P<more>)",
    re.I,
)
"""A statement that belongs to the drug of the statement before."""
_SIG_ONLY = re.compile(
    r"(?<![\w-])([A-Za-z][A-Za-z-]{4,})[ ]+(?=\(?\d[\d,.]*[ ]?"
    r"(?:mg|mcg|[µμ]g|units|mEq|puffs?)(?:/kg)?(?![\w/]))"
)
_VERB = re.compile(r"(?:(?<!f)ed|ing)$|^(?:transfus|infus|administer|deliver|bolus|give)\w*$")
"""A word that names no drug beside an amount: `Transfused 2 units`. `-fed` ends a brand."""
_UNKNOWN = re.compile(r"(?<![\w-])[A-Za-z][A-Za-z-]{4,}(?![\w-])")
_INITIAL = re.compile(r"(?:\b[A-Z]\.|\b(?:Dr|Mr|Mrs|Ms)\.?)[ ]$")
_TITLE = re.compile(r",[ ]*(?:RN|MD|DO|NP|PA|PA-C|LPN|PharmD|ARNP|CRNP|DNP|MA)(?!\w)")
_CHANGED = re.compile(
    r"\b(?:increas|decreas|reduc|lower|rais|doubl|halv|tripl|uptitrat|downtitrat|advanc|escalat)"
    r"(?:e|ed|es|ing)?(?:[ ](?:the|her|his|your|home|dose|dosage|of))*[ \n]*$",
    re.I,
)
_OTHER_NAME = re.compile(r"[ ]?\(([A-Za-z][\w /-]{2,30}(?:,[ ]?[A-Za-z][\w /-]{2,30}){0,4})\)")
_MAX_NAMES = 100
_DISPENSERS = frozenset({"inhaler", "nasal spray", "inhalers", "patch", "eye drops", "nebulizer"})
_FLUIDS = frozenset({"NS", "LR", "D5W"})
_FLUID_WORD = re.compile(
    r"\b(?:bolus|infusion|drip|IVF|IV|fluids?|flush|liters?|maintenance|in[ ]\d+[ ]?mL)\b", re.I
)
_MAX_STATEMENTS = 8
_LONG_NAME = 9
"""A name with at least this many letters may differ from a known name in two places."""


def medication(reading: DocumentState, match: TermMatch, next_start: int) -> Finding | None:
    """Return the medication at `match`; read no further than `next_start`."""
    term = match.reading("medication")
    if term is None:
        return None
    return described(
        reading,
        match.start,
        match.end,
        next_start,
        rule="med.sig.v1" if term.kind != "class" else "med.class.v1",
        engine_confidence=0.95 if term.kind == "word" else 0.85,
        needs_dose=_needs_dose(reading, match, term) or _may_be_tested(reading, match, term),
    )


def _may_be_tested(reading: DocumentState, match: TermMatch, term: Term) -> bool:
    """Return whether a laboratory may test the substance, or test a germ with the substance.

    `Benzodiazepines Negative`. The heading of a table can be above the zone: `URINE ALBUMIN AND
    VITAMINS`.
    """
    text, zone = reading.text, reading.zones.type_at(match.start)
    if zone != "labs":
        begins = text.rfind("\n", 0, match.start) + 1
        ends = text.find("\n", match.end)
        line = text[begins : ends if ends >= 0 else len(text)]
        if term.kind != "class" or zone == "medications" or not line.isupper():
            return False
    sentence = reading.assertions.sentence_at(match.start)
    return not TAKES.search(text, sentence.start, match.start)


def _needs_dose(reading: DocumentState, match: TermMatch, term: Term) -> bool:
    """Return whether a name is a drug only beside a dose (`calcium`, `NS`)."""
    if term.kind == "abbreviation" and reading.text[match.start : match.end] in _FLUIDS:
        around = reading.text[max(0, match.start - 30) : match.end + 30]
        return _FLUID_WORD.search(around) is None
    return term.kind == "bare" and reading.zones.type_at(match.start) != "medications"


def described(
    reading: DocumentState,
    start: int,
    end: int,
    next_start: int,
    *,
    rule: str,
    engine_confidence: float,
    needs_dose: bool = False,
) -> Finding | None:
    """Read the directions around a drug's name and judge whether the patient takes the drug."""
    text = reading.text
    sentence = reading.assertions.sentence_at(start)
    limit = min(next_start, max(_statement_end(reading, sentence.end), end))
    name_end = salt_end(text, end, limit)
    opening = text[sentence.start : start].replace("\n", " ")
    names_end = _other_name_end(text, name_end, limit)
    reading.claim(name_end, names_end)
    directions = read_directions(
        text,
        names_end,
        limit,
        changes=CHANGE_BEFORE.search(opening) is not None,
        titrates=TITRATE_BEFORE.search(opening) is not None,
    )
    before = dose_before(text, start, sentence.start)
    if LIMIT_BEFORE.search(text[sentence.start : before[0] if before else start]):
        directions, before = Directions(end=name_end), None
    steps = [step for step in directions.steps if step.role is not Tense.WRONG]
    directions.is_changed |= (
        bool(steps) and _CHANGED.search(text[sentence.start : start]) is not None
    )
    begin = start
    if before is not None and (not any(s.dose for s in steps)):
        begin = before[0]
        if not steps:
            steps = [DoseStep(Tense.CURRENT, name_end, name_end)]
        steps[0].dose = before[1]
    elif before is not None and kind_of(before[1]) is not Amount.MASS and len(steps) == 1:
        begin, steps[0].strength, steps[0].dose = before[0], steps[0].dose, before[1]
    if needs_dose and not any(step.dose for step in steps):
        return None
    floor = max((f.end for f in reading.findings if sentence.start <= f.end <= start), default=0)
    state = state_of(
        reading, start, name_end, max(directions.end, end), next_start, floor,
        has_target=any(step.role is Tense.TARGET for step in steps),
    )  # fmt: skip
    if directions.is_switched and state is None:
        state = State.PAST
    zone = reading.zones.at(start)
    found = Finding(
        category="medication",
        start=begin,
        end=max(name_end, end),
        head_end=name_end,
        name=own_words(text[start:name_end]),
        rule=rule,
        engine_confidence=engine_confidence,
        zone=zone.zone if zone else None,
    )
    assertion = reading.judge(start, end, is_drug=True)
    sentence_end = min(sentence.end, name_end + 300)
    found = in_state(found, state, assertion, opening)
    is_doubtful = assertion.is_doubtful or is_below_open_heading(reading, start)
    is_doubtful = is_doubtful or _TAKES_OF_OTHER.search(opening) is not None
    is_doubtful = is_doubtful or _is_asked(text[sentence.start : sentence.end], opening)
    is_doubtful = is_doubtful or is_fraction_open(opening, text[name_end:sentence_end])
    is_doubtful = is_doubtful or _is_shared_amount(text, start, steps)
    is_doubtful = is_doubtful or (
        state is None and is_above_lone_state(reading, max(directions.end, end))
    )
    is_doubtful = is_doubtful or (
        not is_set_aside(found)
        and not is_administration(reading, start)
        and (
            text[max(0, start - 1) : start] == "?"
            or has_doubt(
                _own_words_before(reading, sentence.start, start),
                _unexplained(text, name_end, limit, next_start, directions),
            )
            or is_dosed_again(text, limit, next_start)
            or _is_alternative(reading, start, limit, next_start)
            or ALL_OFF.search(text, limit, sentence_end) is not None
        )
    )
    if directions.unexplained is not None or is_doubtful:
        return replace(
            found, start=start, end=max(name_end, directions.unexplained or 0),
            rule=f"{rule.removesuffix('.v1')}-not-understood.v1",
        )  # fmt: skip
    if not steps:
        return found
    findings = of_steps(text, found, steps, directions)
    for extra in findings[1:]:
        reading.findings.append(extra)
    reading.claim(begin, max(f.end for f in findings))
    return findings[0]


_JOINED = re.compile(r"[A-Za-z][ ]?[/+][ ]?$")


def _is_shared_amount(text: str, start: int, steps: Sequence[DoseStep]) -> bool:
    """Return whether an amount such as `5/325 mg` belongs to this drug and to the drug before."""
    if not _JOINED.search(text, max(0, start - 3), start):
        return False
    return any("/" in amount for step in steps for amount in (step.dose, step.strength) if amount)


def _is_alternative(reading: DocumentState, start: int, end: int, next_start: int) -> bool:
    """Return whether `or` joins a drug to another drug, or a list to a drug with a doubt."""
    text = reading.text
    if next_start < len(text) and _OR.fullmatch(_NO_WORD.split(text[end - 60 : next_start])[-1]):
        return True
    before = [f for f in reading.findings if f.category == "medication" and f.end <= start]
    last = max(before, key=lambda f: f.end, default=None)
    if last is None:
        return False
    gap = text[last.end : start]
    return _OR_BEFORE.fullmatch(gap) is not None or (
        "not-understood" in last.rule and _LISTED.fullmatch(gap) is not None
    )


_OR = re.compile(r"[ ,]*or[ ]+", re.I)
_OR_BEFORE = re.compile(r"[^.;:\n]{0,40}?[ ,]or[ ]+", re.I)
_NO_WORD = re.compile(r"(?=[ ,]+or[ ]+$)", re.I)
_LISTED = re.compile(r"[ ]*(?:,|/|&|and\b|,[ ]*and\b)[ ]*", re.I)
_LABEL = re.compile(r"^[ *•-]*(?:changed?|new|continued?|unchanged|modified)[ ]*:", re.I)
"""The state of a line before its drug (`CHANGED: …`)."""
_TAKES_OF_OTHER = re.compile(
    r"\b(?:tak(?:es?|ing|en)|took|us(?:es?|ed|ing)|borrow\w*|shar\w*|got|gets|tried)\b"
    r"[^.;,]{0,30}['’]s?[ ](?:\w+[ ]){0,2}$",
    re.I,
)
"""The patient takes a drug of another person (`takes his father's metoprolol`)."""
_ASKED = re.compile(
    r"\b(?:ask(?:s|ed|ing)?|wonder(?:s|ed|ing)?|inquir\w+|enquir\w+|questions?|questioned|unsure"
    r"|unclear|uncertain|not[ ]sure|(?:want\w*|would[ ]like)[ ]to[ ]know|debat\w+|deciding"
    r"|to[ ]decide)\b[^.;]{0,40}\b(?:whether|if|when|about)\b",
    re.I,
)
_QUESTION = re.compile(
    r"[ \n]*(?:[-*•][ ]*|\d+[.)][ ]*)?(?:should|can|could|may|must|does|do|is|are|would|will"
    r"|shall)\b"
    r".*\?[ \n]*$",
    re.I | re.S,
)
_ALLERGY = re.compile(r"^[ -]*(?:allerg(?:y|ies)|intolerance)\b", re.I)
"""The rest of a statement about an allergy before a medication."""


def _is_asked(sentence: str, opening: str) -> bool:
    """Return whether the text asks about the drug (`asks whether she can stop warfarin`)."""
    return _ASKED.search(opening) is not None or _QUESTION.fullmatch(sentence) is not None


def _own_words_before(reading: DocumentState, begin: int, start: int) -> str:
    """Return the words of the sentence before a medication, from the medication before."""
    zone = reading.zones.at(start)
    if zone is not None and begin < zone.body <= start:
        begin = zone.body
    for finding in reversed(reading.findings):
        if finding.category in ("medication", "allergy") and begin <= finding.end <= start:
            begin = max(begin, finding.end)
    line = reading.text.rfind("\n", begin, start) + 1
    if (
        line > begin
        and not reading.text[line:start].strip(" -*•")
        and is_heading(reading.text[reading.text.rfind("\n", 0, line - 1) + 1 : line - 1])
    ):
        return ""
    words = _ALLERGY.sub("", reading.text[begin:start].replace("\n", " "))
    return _LABEL.sub("", words)


def _unexplained(text: str, start: int, limit: int, next_start: int, directions: Directions) -> str:
    """Return `text[start:limit]` with blanks in place of the explained words.

    The last clause before another medication belongs to that medication.
    """
    if limit == next_start < len(text):
        limit = start + max((m.start() for m in _CLAUSE.finditer(text[start:limit])), default=0)
    kept = [" "] * (limit - start)
    for first, last in directions.passed:
        if last <= limit:
            kept[first - start : last - start] = text[first:last]
    words = "".join(kept)
    if any(step.has_duration for step in directions.steps):
        words = _TAPER_END.sub("", words)
    return words


_TAPER_END = re.compile(r"\b(?:stop|off|discontinue)\b[ .]*$", re.I)
"""The end of a taper: the drug is taken until then."""
_CLAUSE = re.compile(r"[,;.\n|](?!\d)|\b(?:and|but|while|with)\b", re.I)


def _other_name_end(text: str, end: int, limit: int) -> int:
    """Return the end of the brand name or generic name in parentheses after a drug's name."""
    m = _OTHER_NAME.match(text, end, limit)
    return m.end() if m is not None and _names_drugs(m[1]) else end


def _names_drugs(words: str) -> bool:
    """Return whether words in parentheses are names of drugs (`Prinivil, Zestril`)."""
    return any(
        term.category == "medication"
        for name in words.split(",")
        for term in lexicon().lookup(name.strip())
    )


def is_part_of_name(text: str, match: TermMatch) -> bool:
    """Return whether a drug's name belongs to the drug before: a brand name, or a dispenser."""
    if text[match.start : match.end].lower() in _DISPENSERS:
        return True
    if text[match.start : match.end] in ("inh", "inhs"):
        return True
    opening = text.rfind("(", max(0, match.start - _MAX_NAMES), match.start)
    m = _OTHER_NAME.match(text, opening) if opening >= 0 else None
    return m is not None and m.end() > match.end and bool(re.search(r"\w[ ]?$", text[:opening]))


def _statement_end(reading: DocumentState, end: int) -> int:
    """Return where a drug's statement ends: directions may follow in the next sentence or line."""
    for _ in range(_MAX_STATEMENTS):
        m = _CONTINUED.match(reading.text, end)
        if m is None:
            return end
        end = max(m.end(), reading.assertions.sentence_at(m.start("more")).end)
    return end


def read_unknown_drugs(reading: DocumentState) -> None:
    """Add unlisted names: names before a dose, and misspelt names in a medication section."""
    for m in _SIG_ONLY.finditer(reading.text):
        start, end = m.span(1)
        word = m[1].lower()
        if _VERB.search(word):
            continue
        if reading.is_claimed(start, end) or word in words("common_words.txt") | words(
            "not_drugs.txt"
        ):
            continue
        found = described(
            reading, start, end, len(reading.text), rule="med.sig-only.v1", engine_confidence=0.5
        )
        if found is not None and (found.dose is not None or "not-understood" in found.rule):
            reading.add(found)
    for zone in reading.zones.all:
        if zone.zone != "medications":
            continue
        for m in _UNKNOWN.finditer(reading.text, zone.body, zone.end):
            known = misspelt(m.group())
            if known is None or reading.is_claimed(m.start(), m.end()):
                continue
            found = described(
                reading,
                m.start(),
                m.end(),
                zone.end,
                rule="med.misspelt.v1",
                engine_confidence=0.6,
            )
            if found is not None and (
                _is_directed(found) or not _is_person(reading.text, m.start(), m.end())
            ):
                reading.add(found)


def _is_directed(found: Finding) -> bool:
    return bool(found.dose or found.route or found.frequency) or "not-understood" in found.rule


def _is_person(text: str, start: int, end: int) -> bool:
    """Return whether a word is a person's surname (`A. Vance, RN`)."""
    return bool(_INITIAL.search(text[max(0, start - 6) : start]) or _TITLE.match(text, end))


@lru_cache(maxsize=4_096)
def misspelt(word: str) -> str | None:
    """Return the drug that `word` most likely misspells; None for any other word."""
    low = word.lower()
    if low in words("common_words.txt") or lexicon().lookup(low):
        return None
    allowed = 2 if len(low) >= _LONG_NAME else 1
    for name in _names_by_letter().get(low[0], ()):
        if abs(len(name) - len(low)) <= allowed and _distance(low, name, allowed) <= allowed:
            return name
    return None


@cache
def _names_by_letter() -> dict[str, tuple[str, ...]]:
    names: dict[str, list[str]] = {}
    for name in concepts_of_drugs():
        if name.isalpha() and len(name) >= 5:
            names.setdefault(name[0].lower(), []).append(name.lower())
    return {letter: tuple(found) for letter, found in names.items()}


def _distance(left: str, right: str, limit: int) -> int:
    """Return the Levenshtein distance, or any number above `limit` if it is larger."""
    row = list(range(len(right) + 1))
    for i, a in enumerate(left, start=1):
        previous, row[0] = row[0], i
        for j, b in enumerate(right, start=1):
            previous, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, previous + (a != b))
        if min(row) > limit:
            return limit + 1
    return row[-1]
