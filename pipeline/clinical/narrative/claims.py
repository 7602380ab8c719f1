"""Compare what a sentence says about a name with the entities of that name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache

from pipeline.clinical.narrative.items import PartKind, SentencePart
from pipeline.clinical.narrative.known import CitedEntity, singular
from pipeline.clinical.narrative.numbers import amount_reasons
from pipeline.clinical.narrative.printed_dates import StatedDate
from pipeline.clinical.narrative.reasons import UnsupportedReason, reason
from pipeline.clinical.narrative.told import ToldStatement

_NOT_TAKEN = {"stopped", "on_hold", "not_started", "planned", "entered_in_error"}
_STATUS_OF_CUE = {
    "stopped": "stopped", "on_hold": "on_hold", "not_started": "not_started",
    "in_error": "entered_in_error", "planned": "planned",
}  # fmt: skip
_GENERAL_PERSONS = {
    "family", "family's", "family member", "family members", "relative", "relatives",
    "relative's", "blood relative", "blood relatives", "another person", "someone else",
    "other person", "a person other than the patient", "a person who is not the patient",
    "someone", "person", "somebody",
}  # fmt: skip
_START_WORDS = {"start", "started", "begin", "began", "initiate", "initiated", "new", "newly"}
_AGAIN_WORDS = {"resume", "resumed", "restart", "restarted", "resuming", "resumes"}
_MOST_RUNS = 40
"""Numbers that one name may have. A text with more numbers is no prose and is refused."""
_LONGEST_RUN = 5
"""Numbers that one entity may have in a sentence: value, conversion, range, dose, strength."""
_GOES_ON = {"continued", "continues", "continue", "remains", "ongoing", "maintained", "current"}
_LISTS = {"includes", "included", "comprises", "lists", "contains", "for"}
"""Last words of a heading, such as `medical history is notable for`."""
_TAKES = {"takes", "take", "taking", "taken", "uses", "using", "used"}
_GIVEN = {"given", "administered", "received", "receives"}
_DENIAL_IN_NAME = {"no", "not", "without", "non", "negative", "never", "absent"}
_SIDES = ("left", "right", "bilateral")
_SEVERITIES = ("mild", "moderate", "severe")
_STATES = {"had", "has", "have", "no", "off"}
"""Words of a cue that tells a state, such as `had been stopped`, and no event."""
_START_CONTEXT = {"dates", "dating", "since", "started", "start", "starting", "beginning", "began",
                  "onset", "begun", "initiated", "effective"}  # fmt: skip
_STOP_CONTEXT = {"until", "stopped", "discontinued", "through", "ended", "ending", "resolved",
                 "completed", "stop"}  # fmt: skip


def reasons_for(
    told: ToldStatement, candidates: Sequence[tuple[int, CitedEntity]]
) -> tuple[list[str], frozenset[int]]:
    """Return why no candidate supports what is told, and the entities that the name covers.

    A name without numbers and dates speaks of all entities of that name.
    """
    runs = list(_runs(told))
    if len(runs) > _MOST_RUNS:
        return [reason(UnsupportedReason.NUMBER, told.name.text)], frozenset()
    if not any(run for run in runs):
        found = [why for _, known in candidates for why in _of_one(told, (), known)]
        return found, frozenset(i for i, _ in candidates)

    @cache
    def fitting(begin: int, end: int) -> tuple[int, ...]:
        """Return the entities that state everything between two runs."""
        parts = tuple(part for run in runs[begin:end] for part in run)
        return tuple(i for i, known in candidates if not any(_of_one(told, parts, known)))

    @cache
    def split(begin: int) -> tuple[tuple[int, ...], ...] | None:
        if begin == len(runs):
            return ()
        for end in range(min(len(runs), begin + _LONGEST_RUN), begin, -1):
            rest = split(end) if fitting(begin, end) else None
            if rest is not None:
                return (fitting(begin, end), *rest)
        return None

    groups = split(0)
    if groups is not None:
        found = list(_order([group[0] for group in groups], dict(candidates)))
        return found, frozenset(i for group in groups for i in group)
    parts = tuple(part for run in runs for part in run)
    attempts = [list(_of_one(told, parts, known)) for _, known in candidates]
    return min(attempts, key=len), frozenset(i for i, _ in candidates)


def _order(indices: Sequence[int], known: Mapping[int, CitedEntity]) -> Iterator[str]:
    """Yield the doses of a taper that are told in another order."""
    steps = [step for i in indices if (step := known[i].facts.step) is not None]
    if steps != sorted(steps):
        yield reason(UnsupportedReason.NUMBER, "order of steps")


_Part = tuple[SentencePart, str]


def _runs(told: ToldStatement) -> Iterator[list[_Part]]:
    """Yield the parts in groups that begin with a number, or with a date if dates lead."""
    leading: list[_Part] = list(told.dates)
    run: list[_Part] = list(leading)
    has_amount = False
    for part in told.parts:
        if part[0].kind is PartKind.AMOUNT and has_amount:
            yield run
            run = list(leading)
        has_amount = has_amount or part[0].kind is PartKind.AMOUNT
        run.append(part)
    if run or not told.parts:
        yield run


def _of_one(told: ToldStatement, parts: Sequence[_Part], known: CitedEntity) -> Iterator[str]:
    """Yield why one entity does not state what is told."""
    dated = [part for part in parts if part[0].kind is PartKind.DATE]
    yield from _negation(told, known)
    yield from _person(told, known)
    yield from _certainty(told, known)
    yield from _time(told, known, has_own_date=any(_is_own(d[0].date, known) for d in dated))
    yield from _status(told, known)
    yield from _category(told, known)
    yield from _interpretation(told, known)
    yield from _details(told, known)
    yield from amount_reasons(told, parts, known)
    for item, context in dated:
        leads = any(item is each for each, _ in told.dates)
        verbs = _verbs(told, context, leads)
        if item.date is None or not _date_fits(item.date, verbs, known, leads=leads):
            yield reason(UnsupportedReason.DATE, item.text)
    if known.facts.category in ("lab", "vital") and not _states_value(told, parts):
        yield reason(UnsupportedReason.NUMBER, f"no value of {told.name.text}")
    timed = [item.key for item, _ in parts if item.kind is PartKind.FREQUENCY]
    is_dosed = timed or told.purposes or any(i.kind is PartKind.AMOUNT for i, _ in parts)
    if is_dosed and "prn" in known.frequencies and "prn" not in timed:
        yield reason(UnsupportedReason.CERTAINTY, "as needed")
    texts = [item.words for item, _ in parts if item.kind is PartKind.TEXT]
    if len(texts) != len(set(texts)):
        yield reason(UnsupportedReason.WORD, " ".join(texts[-1]))
    for item, _ in parts:
        if item.kind is PartKind.FREQUENCY and item.key not in known.frequencies:
            yield reason(UnsupportedReason.NUMBER, item.text)
        if item.kind is PartKind.ROUTE and item.key not in known.routes:
            yield reason(UnsupportedReason.WORD, item.text)
        if item.kind is PartKind.TEXT and item.words not in known.texts:
            yield reason(UnsupportedReason.WORD, item.text)


def _states_value(told: ToldStatement, parts: Sequence[_Part]) -> bool:
    """Return whether the sentence gives the result: a name alone could state its opposite."""
    if told.kinds("high", "low", "normal", "abnormal", "critical"):
        return True
    return any(
        item.kind is PartKind.TEXT
        or (item.kind is PartKind.AMOUNT and "range" not in context.split(" "))
        for item, context in parts
    )


def _is_own(stated: StatedDate | None, known: CitedEntity) -> bool:
    dates = (*known.own_dates, *known.stops, *_onsets(known))
    return stated is not None and any(stated.fits(each) for each in dates)


def _onsets(known: CitedEntity) -> tuple[str, ...]:
    """Return the onset of a condition: the day of a stroke is its onset."""
    return known.starts if known.facts.category in ("condition", "symptom") else ()


def _verbs(told: ToldStatement, context: str, leads: bool) -> set[str]:
    """Return the words that say what happened on a date.

    "On March 5, warfarin was stopped" states what "warfarin was stopped on March 5" states.
    """
    words = set(context.partition(" |")[0].split(" "))
    if leads:
        events = [cue for cue in told.kinds("stopped", "started") if not _STATES & {*cue.words}]
        words.update(*(cue.words for cue in events))
    if "since" in words and told.kinds("stopped"):
        # "Stopped since March 5" names the day of the stop.
        words = words - _START_CONTEXT | {"stopped"}
    return words


def _date_fits(stated: StatedDate, words: set[str], known: CitedEntity, *, leads: bool) -> bool:
    if known.facts.category == "procedure":
        words = set()
    if words & _START_CONTEXT:
        return any(stated.fits(each) for each in known.starts)
    if words & _STOP_CONTEXT:
        return any(stated.fits(each) for each in known.stops)
    if any(stated.fits(each) for each in _onsets(known)):
        return True
    own = known.own_dates
    encounter = known.facts.encounter_date
    if own:
        return any(stated.fits(each) for each in own)
    if not leads and (known.facts.experiencer in ("family", "other") or _is_planned(known)):
        # "The mother had cancer on March 5" and "is scheduled on March 5" name no visit.
        return False
    if encounter is not None and stated.fits(encounter.isoformat()):
        return stated.day is not None
    return False


def _negation(told: ToldStatement, known: CitedEntity) -> Iterator[str]:
    cues = told.kinds("negation")
    if known.facts.category == "immunization":
        cues = [*cues, *told.kinds("not_started")]
    if _DENIAL_IN_NAME & set(told.name.words) and not cues:
        return
    if len({id(cue) for cue in cues}) > 1 and not _is_list_of_denials(cues):
        yield reason(UnsupportedReason.NEGATION, " ".join(cue.text for cue in cues))
        return
    if known.facts.category == "medication" and known.status in _NOT_TAKEN:
        # The status tells that the medication is not taken; "not stopped" would deny the status.
        if cues:
            yield reason(UnsupportedReason.NEGATION, cues[0].text)
        return
    if bool(cues) != known.is_denied:
        yield reason(UnsupportedReason.NEGATION, cues[0].text if cues else told.name.text)


def _is_list_of_denials(cues: Sequence[SentencePart]) -> bool:
    """Return whether the cues only repeat one denial: `denies any fever, no cough`."""
    return {cue.text for cue in cues} <= {"neither", "nor"}


def _person(told: ToldStatement, known: CitedEntity) -> Iterator[str]:
    cues = told.kinds("family", "other")
    wanted = known.facts.experiencer if known.facts.experiencer in ("family", "other") else None
    kinds = {cue.phrase.kind for cue in cues}
    for cue in told.kinds("joint"):
        yield reason(UnsupportedReason.PERSON, cue.text)
    if wanted is None:
        if kinds:
            yield reason(UnsupportedReason.PERSON, cues[0].text)
        return
    if kinds != {wanted}:
        yield reason(UnsupportedReason.PERSON, cues[0].text if cues else told.name.text)
        return
    for cue in cues:
        general = cue.phrase.direction in ("pre", "post") or cue.text in _GENERAL_PERSONS
        named = singular(tuple(word.removesuffix("'s") for word in cue.words))
        if not general and not known.quotes(named):
            yield reason(UnsupportedReason.PERSON, cue.text)


def _certainty(told: ToldStatement, known: CitedEntity) -> Iterator[str]:
    # A working diagnosis may be certain or suspected, so the sentence must say which.
    doubts = [cue for cue in told.kinds("possible", "hypothetical") if "working" not in cue.words]
    said = {cue.phrase.kind for cue in doubts}
    wanted = known.certainty
    if wanted == "hypothetical" and known.facts.category in ("medication", "procedure"):
        conveyed = known.status in ("on_hold", "not_started", "entered_in_error", "stopped")
        planned = known.facts.category == "procedure" and bool(told.kinds("planned"))
        if (conveyed or planned) and not said:
            return
    confirmed = wanted == "certain" and (
        known.attribute("verification_status") == "confirmed" or known.facts.certainty == "certain"
    )
    if not confirmed:
        yield from (
            reason(UnsupportedReason.CERTAINTY, cue.text) for cue in told.kinds("confirmed")
        )
    if wanted != "certain":
        yield from (
            reason(UnsupportedReason.CERTAINTY, cue.text)
            for cue in told.kinds("current")
            if cue.text == "present"
        )
    if said != ({wanted} - {"certain"}):
        yield reason(UnsupportedReason.CERTAINTY, doubts[0].text if doubts else told.name.text)
    if wanted == "certain" and len(doubts) < len(told.kinds("possible", "hypothetical")):
        yield reason(UnsupportedReason.CERTAINTY, "working diagnosis")


def _time(told: ToldStatement, known: CitedEntity, *, has_own_date: bool) -> Iterator[str]:
    historical = known.facts.temporality == "historical"
    is_event = known.facts.category in ("procedure", "immunization")
    past = is_event and known.is_before_the_visit
    ended = known.attribute("clinical_status") in ("resolved", "inactive", "remission")
    stopped = known.status == "stopped"
    relative = known.facts.experiencer in ("family", "other") and told.kinds("family", "other")
    for cue in told.kinds("history"):
        word = cue.text.split(" ")[-1]
        if word in ("resolved", "remission", "inactive"):
            said = known.attribute("clinical_status")
            if not (said == word or known.has((word,))):
                yield reason(UnsupportedReason.STATUS, cue.text)
        elif not (historical or past or stopped or ended or _is_heading(cue, known)):
            if relative and told.kinds("behind") and cue.words[-2:] == ("history", "of"):
                # "A history of gout in her mother" is the family history.
                continue
            yield reason(UnsupportedReason.TEMPORALITY, cue.text)
    family = [cue for cue in told.kinds("family") if "history" in cue.words]
    # "The father had a heart attack" names a past fact of a relative without a word for the past.
    conveyed = told.kinds("history", "stopped") or has_own_date or family or relative
    if historical and not conveyed and known.status not in ("on_hold", "not_started"):
        yield reason(UnsupportedReason.TEMPORALITY, told.name.text)
    planned = _is_planned(known)
    if told.kinds("planned") and not planned:
        yield reason(UnsupportedReason.TEMPORALITY, told.kinds("planned")[0].text)
    if planned and not told.kinds("planned") and not told.kinds("hypothetical"):
        yield reason(UnsupportedReason.TEMPORALITY, told.name.text)
    if planned and told.kinds("done"):
        yield reason(UnsupportedReason.TEMPORALITY, told.kinds("done")[0].text)
    for cue in told.kinds("current"):
        is_held = known.status == "on_hold" and bool(told.kinds("on_hold"))
        if historical or planned or ended or (known.status in _NOT_TAKEN and not is_held):
            yield reason(UnsupportedReason.TEMPORALITY, cue.text)
    for cue in told.kinds("activity"):
        if not _is_active(known):
            yield reason(UnsupportedReason.TEMPORALITY, cue.text)


def _is_heading(cue: SentencePart, known: CitedEntity) -> bool:
    """Return whether a cue names the section that prints the condition: `medical history includes`.

    Such a section also holds chronic conditions that the patient still has.
    """
    is_list = cue.words[-1] in _LISTS and "history" in cue.words
    is_listed = known.facts.zone_type == "past_medical_history"
    return is_list and is_listed and known.attribute("clinical_status") != "active"


def _is_active(known: CitedEntity) -> bool:
    """Return whether the entity states that a condition is there now; a drug is merely taken."""
    if known.facts.category not in ("condition", "symptom"):
        return True
    # "No active bleeding" would deny less than "no bleeding" does.
    stated = known.facts.temporality == "current" or known.has(("active",))
    return stated and not known.is_denied


def _is_planned(known: CitedEntity) -> bool:
    if known.status is not None:
        return known.status == "planned"
    if known.attribute("status") in ("planned", "preparation"):
        return True
    return known.facts.temporality == "planned"


def _status(told: ToldStatement, known: CitedEntity) -> Iterator[str]:
    cues = told.kinds(
        "stopped", "on_hold", "not_started", "in_error", "changed", "active", "started"
    )
    if known.facts.category != "medication":
        for cue in cues:
            if not _is_plain_use(cue, known):
                yield reason(UnsupportedReason.STATUS, cue.text)
        return
    status = known.status
    said = {_STATUS_OF_CUE[cue.phrase.kind] for cue in cues if cue.phrase.kind in _STATUS_OF_CUE}
    if told.kinds("planned"):
        said.add("planned")
    if said - {status}:
        yield reason(UnsupportedReason.STATUS, (cues or told.kinds("planned"))[0].text)
    elif (
        status in _NOT_TAKEN
        and not said
        and not (status == "planned" and told.kinds("hypothetical"))
    ):
        yield reason(UnsupportedReason.STATUS, told.name.text)
    if status in _NOT_TAKEN:
        given = [cue for cue in told.kinds("done") if _GIVEN & set(cue.words)]
        yield from (reason(UnsupportedReason.STATUS, cue.text) for cue in given)
    for cue in cues:
        kind = cue.phrase.kind
        goes_on = bool((_GOES_ON | _TAKES) & set(cue.words))
        if kind == "active" and status not in ("active", "changed") and (goes_on or not said):
            yield reason(UnsupportedReason.STATUS, cue.text)
        if cue.words[:2] == ("may", "be") and "prn" not in known.frequencies:
            yield reason(UnsupportedReason.CERTAINTY, cue.text)
        if kind == "changed" and status != "changed":
            yield reason(UnsupportedReason.STATUS, cue.text)
        if kind == "started" and said - {"planned"}:
            yield reason(UnsupportedReason.STATUS, cue.text)
        elif kind == "started" and not said:
            again = bool(_AGAIN_WORDS & set(cue.words))
            stated = known.vocabulary & (_AGAIN_WORDS if again else _START_WORDS)
            if status in _NOT_TAKEN or not (stated or (known.starts and not again)):
                yield reason(UnsupportedReason.STATUS, cue.text)


def _is_plain_use(cue: SentencePart, known: CitedEntity) -> bool:
    """Return whether a word about medications is plain English about another entity."""
    if known.facts.category == "immunization":
        return cue.phrase.kind == "not_started" and known.is_denied
    if known.facts.category == "procedure" and "completed" in cue.words:
        return not (known.is_denied or _is_planned(known))
    return known.has(cue.words)


def _category(told: ToldStatement, known: CitedEntity) -> Iterator[str]:
    is_allergy = known.facts.category == "allergy"
    cues = told.kinds("allergy")
    if is_allergy and not cues and not {"allergy", "allergic"} & set(told.name.words):
        yield reason(UnsupportedReason.NAME, told.name.text)
    if cues and not is_allergy:
        yield reason(UnsupportedReason.NAME, cues[0].text)
    for purpose in told.purposes:
        indication = str(known.attribute("indication") or "")
        if not (known.has(purpose.words) or purpose.text == indication.casefold()):
            yield reason(UnsupportedReason.WORD, f"for {purpose.text}")


def _interpretation(told: ToldStatement, known: CitedEntity) -> Iterator[str]:
    for kind in ("high", "low", "normal", "abnormal", "critical"):
        for cue in told.kinds(kind):
            if kind in known.flags:
                continue
            if known.facts.category in ("condition", "symptom") and known.has(cue.words):
                continue
            yield reason(UnsupportedReason.FLAG, cue.text)


def _details(told: ToldStatement, known: CitedEntity) -> Iterator[str]:
    for names, attribute in ((_SIDES, "laterality"), (_SEVERITIES, "severity")):
        for name in names:
            for cue in told.kinds(name):
                stated = known.attribute(attribute)
                fits = stated == name if stated else known.has((name,))
                if not fits:
                    yield reason(UnsupportedReason.WORD, cue.text)
    if known.attribute("laterality") in ("left", "right"):
        # "Otitis media in the ears" tells both sides of a fact of one side.
        for word in told.words:
            if singular(word.words) != word.words and not set(word.words) & set(known.quote):
                yield reason(UnsupportedReason.WORD, word.text)
