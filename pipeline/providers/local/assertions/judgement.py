"""Judge a statement by ConText's terms: negation, temporality, certainty, experiencer.

A cue opens a scope before or after itself inside one sentence. A termination (`but`, `which`, a new
verb) closes the scope. A pseudo-cue (`no increase in`) opens no scope. None means that nothing
decides. Sources: Chapman 2001 (NegEx), Harkema
2009 (ConText); the phrases are our own.
"""

from __future__ import annotations

import bisect
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from pipeline.clinical.page_text.lines import Sentence
from pipeline.providers.local.assertions.check_boxes import BoxItem, BoxTick
from pipeline.providers.local.assertions.copy_marks import is_below_copy_mark
from pipeline.providers.local.assertions.cues import POST, Cue, CueKind, cues_in
from pipeline.providers.local.assertions.experiencer import (
    experiencer_at,
    is_named_patient,
    is_person_doubtful,
)
from pipeline.providers.local.assertions.person_headings import PersonHeadings
from pipeline.providers.local.assertions.reach import (
    Reach,
    ends_later,
    goes_on_denied,
    is_open_denial,
    reach,
)
from pipeline.providers.local.text.page_turns import Continued
from pipeline.providers.local.text.zones import Zones
from pipeline.providers.schemas import Certainty, Experiencer, Temporality, ZoneType


class Assertion(NamedTuple):
    """The assertions of the text about one mention."""

    negated: bool | None = None
    temporality: Temporality | None = None
    certainty: Certainty | None = None
    experiencer: Experiencer | None = None
    is_doubtful: bool = False
    """The text leaves open whose the mention is."""


_POST_REACH = 60
"""The most characters between a mention and a cue after it (`… was ruled out`)."""
_MAX_CUES = 40
"""The most cues examined on each side of a mention."""
_NEAR_REACH = 34
"""The most characters that a bare `not` reaches."""
_PAST_ZONES: frozenset[ZoneType] = frozenset({"past_medical_history"})
_PRESENT_ZONES: frozenset[ZoneType] = frozenset({"chief_complaint", "assessment_plan"})


_POSSIBLE = frozenset({CueKind.POSSIBLE, CueKind.POSSIBLE_POST, CueKind.DOUBT, CueKind.BETWEEN})
_NOT = frozenset(
    {
        CueKind.NOT,
        CueKind.NEAR_NOT,
        CueKind.ADJACENT_NOT,
        CueKind.NOT_POST,
        CueKind.NEAR_NOT_POST,
        CueKind.ADJACENT_NOT_POST,
        CueKind.DENIED_PART,
    }
)
_NEAR_POST = frozenset({CueKind.NEAR_NOT_POST, CueKind.REFUSED_POST})
_ADJACENT_POST = frozenset({CueKind.RISK_POST, CueKind.ADJACENT_NOT_POST})
_HYPOTHETICAL = frozenset(
    {CueKind.CONDITION, CueKind.RISK, CueKind.RISK_POST, CueKind.PLANNED_POST}
)
_PLANNED = frozenset({CueKind.PLANNED, CueKind.PLANNED_POST, CueKind.LATER_POST})


_PLANS: frozenset[ZoneType] = frozenset({"assessment_plan"})
_RESULT = re.compile(
    r"\b(?:show(?:s|ed)|reveal(?:s|ed)|demonstrat(?:es|ed)|confirmed|(?:was|were|is|are|came[ ]back"
    r"|returned|read[ ]as)[ ](?:\w+[ ]){0,2}(?:normal|abnormal|negative|positive|unremarkable"
    r"|clear)"
    r"|(?:was|were)[ ](?:\w+ly[ ])?(?:performed|done|completed|carried[ ]out))\b",
    re.I,
)
"""A result behind a procedure, which makes the procedure done."""
_GOVERNED = re.compile(
    r",?[ ](?:for|with|after|by|due[ ]to|because[ ]of)[ ](?:[a-z-]+[ ]){0,3}", re.I
)
"""The words between a past time and what happened at that time."""
_GOES_ON = re.compile(
    r"(?:[ ](?:and|or)(?:[ ](?!(?:and|or|the|his|her|an?|new|any|develop\w*|occurs?|appears?"
    r"|recurs?|returns?|begins?|starts?)\b)[a-z-]+){1,2}?)?"
    r"[ ]+(?:(?:still|ever|also|were[ ]to|should|[a-z]+ly)[ ])*"
    r"(?:(?:gets?|becomes?|grows?|is|are)[ ](?:any[ ]|much[ ]|still[ ])?(?:worse|no[ ]better"
    r"|not[ ](?:any[ ])?better)|worsens?|persists?|continues?|(?:does|do)(?:[ ]not|n['’]t)[ ]"
    r"(?:\w+ly[ ])?(?:improve|resolve|settle|subside|ease|clear|get[ ]better|go[ ]away)"
    r"|fails?[ ]to[ ](?:improve|resolve|settle))\b",
    re.I,
)
"""The verbs that a condition asks of a symptom that is already there."""
_BEGINS = re.compile(
    r",|\b(?:any|new|another|further|more|develop\w*|has|have|had|gets?|getting|worsening"
    r"|experienc\w*|notic\w*|occurs?|is|are|there|you|he|she|they|we|patient|pt|recurr?\w*)\b",
    re.I,
)
_STATED_NOW = re.compile(
    r"[ ](?:still[ ])?(?:is|are|remains?|continues?|comes?[ ]and[ ]goes?)\b"
    r"(?![ ](?:\w+[ ])?(?:over|past|in[ ]the[ ]past|remote|noted|listed|documented|reported"
    r"|recorded|status|history|known|said))",
    re.I,
)
"""A verb in the present tense behind a mention, which holds against a heading of the past."""
_ANSWER = re.compile(r"[ ]+(?:(?P<no>N)|Y)(?=[ ]*(?:[/,;|]|$))")
"""An answer of one letter behind an item: `Diabetes Y / Asthma N`."""
_BOTH = re.compile(
    r"[ ]*[(\[][^)\]]*\b(?:patient|pt|self)\b[^)\]]*\b(?:and|&)\b"
    r"|[ ]*[(\[][^)\]]*\b(?:and|&)[ ](?:the[ ])?(?:patient|pt|self)\b"
    r"|[ ]*:[ ]*[a-z, ]{1,40}?(?:,|\band|&)[ ]*(?:the[ ])?(?:patient|pt|self)\b(?![ ]?:)"
    r"|[ ]*:[ ]*(?:patient|pt|self)[ ]*(?:,|and\b|&)[ ]*[a-z]",
    re.I,
)
"""A parenthesis that names the patient beside another person: `gout (father and patient)`."""
_ENDED_CELL = re.compile(r"[ ]+(?:Resolved|Inactive|RESOLVED|INACTIVE)(?=[ ]+[\dA-Z]|[ ]*$)")
"""The cell of a status behind the name of a problem: `Asthma | Resolved | 2001`."""
_ABSENT_REACH = 14
_RESULT_REACH = 100


class Assertions:
    """Judges the mentions of one document; scans each sentence for cues once."""

    def __init__(
        self,
        text: str,
        sentences: Sequence[Sentence],
        zones: Zones,
        items: Sequence[BoxItem] = (),
        persons: PersonHeadings | None = None,
        continued: Mapping[int, Continued] | None = None,
    ) -> None:
        self._text = text
        self._continued = continued or {}
        self._persons = persons
        self._sentences = sentences
        self._starts = [sentence.start for sentence in sentences]
        self._zones = zones
        self._items = items
        self._item_starts = [item.start for item in items]
        self._cues = lru_cache(maxsize=64)(self._scan)

    def sentence_at(self, offset: int) -> Sentence:
        """Return the sentence that contains `offset`."""
        index = bisect.bisect_right(self._starts, offset) - 1
        return self._sentences[index] if index >= 0 else Sentence(0, len(self._text))

    def judge(
        self,
        start: int,
        end: int,
        *,
        lasting: bool = False,
        is_act: bool = False,
        is_drug: bool = False,
    ) -> Assertion:
        """Judge the mention at `text[start:end]`.

        `lasting` marks a chronic disease, `is_act` something that is done (a procedure, a vaccine).
        With `is_drug`, prophylaxis behind the drug is the reason for the drug.
        """
        sentence = self.sentence_at(start)
        shift = self._shift(sentence) - sentence.start
        first, last = start + shift, end + shift
        cues = _near(self._cues(sentence), first)
        words = self._words(sentence)
        scope = _in_scope(cues, words, first, last, is_act=is_act)
        if is_drug:
            scope = [cue for cue in scope if not _is_about_use(cue, words, first)]
        if is_act and _RESULT.search(words, last, last + _RESULT_REACH):
            scope = [cue for cue in scope if cue.kind not in _PLANNED]
        if _goes_on(scope, words, first, last):
            scope = [c for c in scope if c.kind not in (CueKind.CONDITION, CueKind.RISK)]
        scope, is_open = _reaching(scope, words, first, last, is_act=is_act)
        kinds = _kinds_of(scope, is_act=is_act, is_drug=is_drug)
        if CueKind.ONSET_POST in kinds and _HAD.search(words[:first]):
            kinds = kinds | {CueKind.PAST_POST}
        if _ENDED_CELL.match(words, last):
            kinds = kinds | {CueKind.PAST_POST}
        if _is_of_time(cues, words, first) or self._is_reason_of_past_stop(words[:first]):
            kinds = kinds | {CueKind.ONSET_POST}
        zone = self._zones.type_at(start)
        negated = _negated(kinds)
        if self._is_struck(start):
            negated = True
        tick = self._tick_at(start)
        answer = _ANSWER.match(words, last)
        if tick is BoxTick.DENIED or (answer and answer["no"]):
            negated = True
        elif answer:
            negated, kinds = None, kinds - _NOT | {CueKind.AFFIRM}
        elif tick is BoxTick.STATED and negated is None:
            kinds = kinds | {CueKind.AFFIRM}
        told, shift = self._with_sentence_before(sentence, words)
        is_doubtful = is_person_doubtful(told, first + shift)
        if is_doubtful and not told[:shift].rstrip().endswith((";", ",")):
            # A new sentence of a note speaks of the patient unless the pronoun excludes that.
            told, shift, is_doubtful = words, 0, is_person_doubtful(words, first)
        person = experiencer_at(told, first + shift, last + shift)
        if person in (None, "patient"):
            person = _experiencer(kinds, zone, cues, words[:first])
            if not _is_patient_subject(words[:first]):
                person = self.person_at(start) or person
        if is_named_patient(words, last):
            person = "patient"
        is_planned = is_act and negated is not True and bool(kinds & _PLANNED)
        if is_planned:
            kinds = kinds - {CueKind.PRESENT} | {CueKind.PLANNED_POST}
        return Assertion(
            negated=negated if negated is not None else _affirmed(kinds, zone, cues, first, last),
            temporality="planned"
            if is_planned
            else _temporality(
                kinds,
                None if is_act and zone in _PLANS else zone,
                lasting=lasting or _STATED_NOW.match(words, last) is not None,
            ),
            certainty=_certainty(kinds, negated=negated is True),
            experiencer=person,
            is_doubtful=is_doubtful
            or _BOTH.match(words, last) is not None
            or CueKind.UNCLEAR in kinds
            or (negated is True and not is_drug and ends_later(words, last))
            or is_below_copy_mark(self._text, start)
            or (is_open and negated is not True),
        )

    def _with_sentence_before(self, sentence: Sentence, words: str) -> tuple[str, int]:
        """Put the sentence before in front of a sentence that begins with a pronoun."""
        index = bisect.bisect_left(self._starts, sentence.start)
        if index == 0 or not _PRONOUN_FIRST.match(words):
            return words, 0
        before = self._sentences[index - 1]
        if "\n" in self._text[before.start : sentence.start].strip("\n") or self._text[
            before.end : sentence.start
        ].strip(" "):
            return words, 0
        said = self._words(before)
        return f"{said} {words}", len(said) + 1

    def person_at(self, offset: int) -> Experiencer | None:
        """Return the other person whom the heading above `offset` names."""
        return self._persons.at(offset) if self._persons else None

    def _is_reason_of_past_stop(self, before: str) -> bool:
        """Return whether a mention is the reason of a stop at a past time.

        A day that the document prints again can be the day of the visit, so it proves nothing.
        """
        m = _STOPPED_THEN.search(before)
        return m is not None and (m["day"] is None or self._text.count(m["day"]) == 1)

    def _is_struck(self, offset: int) -> bool:
        """Return whether the word at `offset` is struck through: between `~~` and `~~`."""
        line = self._text.rfind("\n", 0, offset) + 1
        return self._text.count("~~", line, offset) % 2 == 1

    def _tick_at(self, offset: int) -> BoxTick | None:
        index = bisect.bisect_right(self._item_starts, offset) - 1
        if index >= 0 and offset < self._items[index].end:
            return self._items[index].tick
        return None

    def _words(self, sentence: Sentence) -> str:
        before = self._continued.get(sentence.start)
        if before is None:
            return self._text[sentence.start : sentence.end].replace("\n", " ")
        # Blanks replace the running header between the two parts.
        own = self._text[before.body : sentence.end].rjust(sentence.end - sentence.start)
        return f"{before.words} {own}".replace("\n", " ")

    def _shift(self, sentence: Sentence) -> int:
        """Return where the sentence begins in its words."""
        before = self._continued.get(sentence.start)
        return len(before.words) + 1 if before is not None else 0

    def _scan(self, sentence: Sentence) -> tuple[Cue, ...]:
        return cues_in(self._words(sentence))


_STOPPED_THEN = re.compile(
    r"\b(?:stopped|discontinued|d/?c['’]?e?d|held|ceased|withdrawn|withheld|(?:taken|came)[ ]off)\b"
    r"[^.;,]{0,40}?(?:\b(?P<day>\d{1,2}[/-]\d{1,2}[/-]\d{2,4}|\d{4}-\d\d-\d\d)\b"
    r"|\b(?:\d{1,2}/)?(?:19|20)\d\d\b|\blast[ ](?:year|month|spring|summer|fall|autumn|winter)\b"
    r"|\b(?:years?|months?)[ ](?:ago|earlier)\b|\bpreviously\b|\bin[ ]the[ ]past\b)"
    r"[ ,(]+(?:for|due[ ]to|because[ ]of|owing[ ]to|secondary[ ]to|2/2|after|following)[ ]"
    r"(?:[a-z-]+[ ]){0,3}$",
    re.I,
)
"""The words of a stop at a past time, up to its reason."""
_HAD = re.compile(r"\bhad(?![ ]been)\b[^.;,]{0,30}$", re.I)
"""A past verb: `had asthma ten years ago` is over, `has had asthma for ten years` is not."""
_PRONOUN_FIRST = re.compile(r"[ ]*(?:(?:and|but|now|also|today)[ ,]+)*(?:he|she)[ ]", re.I)
_PATIENT_SUBJECT = re.compile(r"(?:^|[.;:,])\W*(?:the[ ])?(?:patient|pt)[ ](?!['’])", re.I)


def _is_patient_subject(before: str) -> bool:
    """Return whether the words before a mention begin with the patient as their subject."""
    return _PATIENT_SUBJECT.search(before) is not None


_TROUBLE = re.compile(
    r"[ ]*(?:[a-z]+[ ]){0,2}(?:issues?|problems?|trouble|difficult(?:y|ies)|concerns?|complaints?)"
    r"[ ](?:with|on|from|about|regarding|since)\b"
    r"|[ ]*(?:[a-z]+[ ]){0,4}(?:stop|hold|discontinu|pause|ceas)[a-z]*[ ]",
    re.I,
)
_PREVENTS = re.compile(r"prevent|prophyla", re.I)
_MEANS = re.compile(r",|\b(?:with|by|using|continue|on)\b", re.I)


def _is_about_use(cue: Cue, words: str, first: int) -> bool:
    """Return whether a cue before a drug is about the use of the drug, not about the drug.

    `no problems with metformin` and `do not stop metformin` say that the patient takes metformin.
    `to prevent gout, continue allopurinol` gives a reason.
    """
    if cue.kind in (CueKind.NOT, CueKind.NEAR_NOT) and cue.end <= first:
        return _TROUBLE.match(words, cue.end, first) is not None
    if cue.kind is CueKind.RISK and cue.end <= first:
        prevents = _PREVENTS.search(words, cue.start, cue.end) is not None
        return prevents and _MEANS.search(words, cue.end, first) is not None
    return False


def _near(cues: tuple[Cue, ...], first: int) -> tuple[Cue, ...]:
    """Return the cues around `first`. The limit keeps a very long list from quadratic cost."""
    at = bisect.bisect_left(cues, first, key=lambda cue: cue.start)
    return cues[max(0, at - _MAX_CUES) : at + _MAX_CUES]


def _in_scope(
    cues: Sequence[Cue], words: str, first: int, last: int, *, is_act: bool = False
) -> list[Cue]:
    """Return the cues whose scope contains the mention at `first..last` of the sentence."""
    found = [
        cue
        for cue in cues
        if cue.kind is CueKind.DENIED_PART and cue.start < first and last <= cue.end
    ]
    before = [cue for cue in cues if cue.end <= first]
    conditions = [cue for cue in before if cue.kind is CueKind.CONDITION]
    if conditions:
        found.append(conditions[-1])
    is_stated = False
    for cue in reversed(before):
        if cue.kind is CueKind.STOP:
            break
        if is_stated and cue.kind is not CueKind.DOUBT:
            continue
        if cue.kind is CueKind.DENIED_PART:
            if goes_on_denied(words, cue.end, first):
                found.append(cue._replace(kind=CueKind.UNCLEAR))
            break
        if cue.kind is CueKind.NEAR_NOT and first - cue.end > _NEAR_REACH:
            continue
        if cue.kind is CueKind.ADJACENT_NOT and first - cue.end > 1:
            continue
        is_adjective = is_act and cue.kind is CueKind.PLANNED_POST and first - cue.end <= 1
        if cue.kind not in POST or is_adjective:
            found.append(cue)
        is_stated = is_stated or cue.kind is CueKind.AFFIRM
    for cue in (cue for cue in cues if cue.start >= last):
        if cue.kind is CueKind.STOP or cue.start - last > _POST_REACH:
            break
        if cue.kind in _ADJACENT_POST and cue.start - last > 1:
            continue
        if cue.kind in _NEAR_POST and cue.start - last > _ABSENT_REACH:
            continue
        if cue.kind in POST or cue.kind in (CueKind.BETWEEN, CueKind.PLANNED):
            found.append(cue)
        elif cue.kind in (CueKind.NOT, CueKind.AFFIRM):
            break
    return found


def _reaching(
    scope: Sequence[Cue], words: str, first: int, last: int, *, is_act: bool
) -> tuple[list[Cue], bool]:
    """Return the cues that reach the mention, and whether the text leaves one of the cues open."""
    reached = [(cue, reach(cue, words, first, last, is_act=is_act)) for cue in scope]
    near = [cue for cue, how in reached if how is Reach.REACHES]
    kept = [cue for cue in near if not is_open_denial(cue, words, first, last)]
    return kept, len(kept) < len(near) or any(how is Reach.OPEN for _, how in reached)


def _kinds_of(scope: Sequence[Cue], *, is_act: bool, is_drug: bool) -> set[CueKind]:
    """Return the kinds of these cues; some kinds outrank or imply others."""
    kinds = {cue.kind for cue in scope}
    if CueKind.UNCLEAR in kinds:
        kinds -= _NOT
    if is_act and CueKind.REFUSED_POST in kinds:
        kinds.add(CueKind.NOT_POST)
    if is_drug:
        kinds.discard(CueKind.RISK_POST)
    if CueKind.CONFIRM_POST in kinds:
        kinds = kinds - _POSSIBLE - {CueKind.RISK} | {CueKind.AFFIRM}
    return kinds


def _goes_on(scope: Sequence[Cue], words: str, first: int, last: int) -> bool:
    """Return whether a condition asks only if the mention stays (`if the cough persists`)."""
    conditions = [cue.end for cue in scope if cue.kind is CueKind.CONDITION and cue.end <= first]
    if not conditions or _BEGINS.search(words, max(conditions), first):
        return False
    return _GOES_ON.match(words, last) is not None


def _is_of_time(cues: Sequence[Cue], words: str, first: int) -> bool:
    """Return whether a past time governs the mention (`operated on in 2021 for cataract`)."""
    return any(
        cue.kind is CueKind.ONSET_POST and _GOVERNED.fullmatch(words, cue.end, first)
        for cue in cues
        if cue.end <= first
    )


def _negated(kinds: set[CueKind]) -> bool | None:
    if kinds & _NOT:
        return True
    return None


def _affirmed(
    kinds: set[CueKind], zone: ZoneType | None, cues: Sequence[Cue], first: int, last: int
) -> bool | None:
    """Return False if the sentence states the mention, None if the sentence leaves it open."""
    if kinds & {CueKind.AFFIRM, CueKind.PAST, CueKind.HISTORY, CueKind.PRESENT}:
        return False
    if any(cue.kind is CueKind.AFFIRM and cue.start >= last for cue in cues):
        return False
    if zone in _PAST_ZONES or zone in _PRESENT_ZONES or zone in ("medications", "procedures"):
        return False
    return None


def _temporality(
    kinds: set[CueKind], zone: ZoneType | None, *, lasting: bool
) -> Temporality | None:
    if kinds & {CueKind.PAST, CueKind.PAST_POST}:
        return "historical"
    if kinds & {CueKind.HISTORY, CueKind.ONSET_POST} or zone in _PAST_ZONES:
        return None if lasting else "historical"
    if CueKind.PRESENT in kinds or zone in _PRESENT_ZONES:
        return "current"
    return None


def _certainty(kinds: set[CueKind], *, negated: bool) -> Certainty | None:
    if kinds & _HYPOTHETICAL and not negated:
        return "hypothetical"
    if kinds & _POSSIBLE and not negated:
        return "possible"
    if negated or kinds & {CueKind.AFFIRM, CueKind.PRESENT}:
        return "certain"
    return None


def _experiencer(
    kinds: set[CueKind], zone: ZoneType | None, cues: Sequence[Cue], before: str
) -> Experiencer | None:
    """Return whose mention it is if the sentence names no other person."""
    if kinds & {CueKind.FAMILY, CueKind.FAMILY_POST}:
        return "family"
    if zone == "family_history" and not _is_patient_subject(before):
        return "family"
    return _patient_only(cues)


def _patient_only(cues: Sequence[Cue]) -> Experiencer | None:
    """Return `patient` if the sentence is about the patient and names no relative, else None."""
    if any(cue.kind is CueKind.PATIENT for cue in cues) and not any(
        cue.kind in (CueKind.FAMILY, CueKind.FAMILY_POST) for cue in cues
    ):
        return "patient"
    return None
