"""What the text says about a medication, as printed: directions, start, stop, indication.

A date or a reason of another drug never counts. Two candidates that differ leave no answer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from pipeline.clinical.evidence import Evidence
from pipeline.clinical.facts import EntityFacts
from pipeline.clinical.medications.sig import salt_end
from pipeline.providers.local.enrichment.clauses import (
    DATE,
    Clause,
    cells_of,
    clause_of,
    only,
    reason_end,
    skip_directions,
)
from pipeline.providers.local.names.lexicon import lexicon

_PASS1 = ("strength", "dose", "route", "frequency", "status")
_STARTED = r"(?:start(?:ed|s|ing)?|began|begun|begin(?:s|ning)?|initiated|commenced|since)"
_STOPPED = (
    r"(?:d/c(?:['’]?e?d)?|dc['’]?d|discontinu(?:ed|e)|stop(?:ped|s)?|ended|ends|until|till|through"
    r"|thru)"
)
_ON = r"(?:[ ]date)?[ :]*(?:(?:on|in|as[ ]of|after)[ ]+)?"
_BEHIND = re.compile(
    rf"(?P<cue>{_STARTED}|{_STOPPED}|(?:start|stop|end)[ ]date){_ON}(?P<date>{DATE})"
    rf"(?:[ ]?(?:-|–|to|through|until)[ ]?(?P<last>{DATE}))?",
    re.I,
)
_SPAN = re.compile(rf"(?P<date>{DATE})[ ]?(?:-|–|to|through|until)[ ]?(?P<last>{DATE})", re.I)
_DATED = re.compile(rf"(?:on|in|since|from)[ ](?P<date>{DATE})", re.I)
_DATE_HERE = re.compile(DATE, re.I)
_VERB_AHEAD = re.compile(
    rf"(?:^|[ ,;:.(])(?P<cue>{_STARTED}|{_STOPPED})[ ](?:(?:on|the|taking)[ ])*$", re.I
)
_DATE_AHEAD = re.compile(
    rf"[ *•-]*(?:(?:on|in|since)[ ])?(?P<date>{DATE})[ ]?[:,–-]?[ ]?"
    r"(?:(?:he|she|they|we|i|pt|patient|the[ ]patient|was|were)[ ])*"
    rf"(?P<cue>{_STARTED}|{_STOPPED})[ ](?:(?:on|the|taking)[ ])*"
    rf"|[ *•-]*since[ ](?P<since>{DATE}),?[ ](?:(?:he|she|they|pt|patient|the[ ]patient|has"
    r"|have|been|is|was|on|taking|taken|takes)[ ])*",
    re.I,
)
"""The whole start of a sentence. A date behind another entity is a date of that entity."""
_AGAINST = re.compile(
    rf"(?<!\w)(?:{_STOPPED}|hold(?:ing)?|held|avoid(?:ed|ing)?|declin\w*|refus\w*|no|not|never|reduc\w*"
    r"|decreas\w*|lower\w*|instead[ ]of|allerg\w*|intoleran\w*|failed|stopping)(?!\w)[^,;.]*$",
    re.I,
)
_DENIED = re.compile(
    r"\b(?:not|never|n['’]t|no|without|hold|held|holding|on[ ]hold|if|unless)\b", re.I
)
_HELD = re.compile(r"\bh(?:old|eld|olding)\b|\bpaus|\bsuspend", re.I)
_START_COLUMN = re.compile(
    r"(?:start(?:ed)?|begin|date[ ]started|start[ ]date|begin[ ]date|started[ ]on|since"
    r"|date[ ]prescribed|ordered[ ]on)"
)
_STOP_COLUMN = re.compile(
    r"(?:stop(?:ped)?|end(?:ed)?|date[ ]stopped|stop[ ]date|end[ ]date|discontinued"
    r"|discontinued[ ]on|date[ ]discontinued)"
)
_WHY_COLUMN = re.compile(r"(?:indications?|reason|purpose|used[ ]for|for|diagnosis|why)")
_WHY_HEADING = re.compile(r"\b(?:indications?|reason|used[ ]for)[ ]*$", re.I)
_NO_REASON = re.compile(r"(?:n/?a|none|unknown|not[ ]stated|[-–—*]+)", re.I)
_FOR = re.compile(
    r"(?:indications?[ ]?:?|reason[ ]?:?|(?:used[ ]|taken[ ])?for|to[ ](?:treat|prevent|control"
    r"|manage|help[ ]with|relieve))[ ]+"
    r"(?:(?:the[ ])?(?:treatment|management|prevention|control|relief|prophylaxis)[ ]of[ ])?",
    re.I,
)
_IN_PARENTHESES = re.compile(r"\((?P<why>[^()\n]{2,60})\)")
_FOR_AHEAD = re.compile(
    r"^[ ]*for[ ](?P<why>[^,:;]{2,60})[,:][ ]*(?:(?:we|will|continue|start|take|takes|taking|on|is"
    r"|he|she|patient|pt|the|currently|uses?|using)[ ]+)*$",
    re.I,
)
_USES = re.compile(
    r"(?:sleep|blood[ ]pressure|BP|cholesterol|lipids|rate[ ]control|heart[ ]rate"
    r"|stroke[ ]prevention"
    r"|(?:DVT|VTE|GI|stress[ ]ulcer|migraine|stroke|gout|seizure|infection)[ ]prophylaxis"
    r"|prophylaxis|contraception|birth[ ]control|mood|fluid|swelling|blood[ ]sugar|heart"
    r"|bowel[ ]regimen|smoking[ ]cessation|pain[ ]control|breakthrough[ ]pain)(?!\w)",
    re.I,
)
"""Uses that are no conditions."""
_SEPARATOR = re.compile(r"[\s/-]+")
_ADMITTED_KINDS = ("word", "official")


def read(facts: EntityFacts, evidence: Evidence) -> dict[str, str]:
    """Return fields of `FoundAttributes`."""
    found: dict[str, str] = {name: getattr(facts, name) for name in _PASS1 if getattr(facts, name)}
    if _is_substance(facts.name):
        found["ingredient"] = facts.name
    clause = clause_of(evidence)
    for name, values in (
        ("start", list(_starts(clause, evidence))),
        ("stop", [] if _is_held(facts, clause) else list(_stops(clause, evidence))),
        ("indication", list(_reasons(facts, clause, evidence))),
    ):
        value = only(values)
        if value is not None:
            found[name] = value
    return found


def _is_held(facts: EntityFacts, clause: Clause) -> bool:
    """Return whether the drug is paused: the day of its return is no end."""
    return facts.status == "on_hold" or _HELD.search(clause.before) is not None


def _is_substance(name: str) -> bool:
    """Return whether the lexicon knows a name as that of a substance, not of a brand."""
    first = len(name.split(" ", maxsplit=1)[0])
    has_salt = salt_end(name, first, len(name)) == len(name)
    return _is_word_of_substance(name) or (has_salt and _is_word_of_substance(name[:first]))


def _is_word_of_substance(name: str) -> bool:
    terms = [term for term in lexicon().lookup(name) if term.category == "medication"]
    if len(terms) != 1 or terms[0].kind not in _ADMITTED_KINDS:
        return False
    own, known = (_SEPARATOR.sub(" ", text.casefold()) for text in (name, terms[0].name))
    return own.startswith(known)


def _starts(clause: Clause, evidence: Evidence) -> Iterator[str]:
    yield from (cell for cell in cells_of(evidence, _START_COLUMN) if re.search(r"\d", cell))
    yield from (date for kind, date in _dates(clause, evidence) if kind == "start")
    yield from _in_remarks(evidence, "start")


def _stops(clause: Clause, evidence: Evidence) -> Iterator[str]:
    yield from (cell for cell in cells_of(evidence, _STOP_COLUMN) if re.search(r"\d", cell))
    yield from (date for kind, date in _dates(clause, evidence) if kind == "stop")
    yield from _in_remarks(evidence, "stop")


def _in_remarks(evidence: Evidence, kind: str) -> Iterator[str]:
    """Yield the dates of cells that consist of a date and its verb (`started 06/2015`)."""
    for _, cell in evidence.cells:
        m = _BEHIND.fullmatch(cell.strip(" ."))
        if m is not None and _kind(m["cue"]) == kind:
            yield m["date"]


def _dates(clause: Clause, evidence: Evidence) -> Iterator[tuple[str, str]]:
    """Yield the dates of the clause, each with `start` or `stop`."""
    for text in (" ".join(evidence.quote.split()), clause.after):
        yield from _dates_behind(text, is_quote=text is not clause.after)
    ahead = None if evidence.entity_before else _DATE_AHEAD.fullmatch(clause.before)
    if ahead is not None:
        yield (_kind(ahead["cue"] or "since"), ahead["date"] or ahead["since"])
    verb = _VERB_AHEAD.search(clause.before)
    if verb is not None and ahead is None and not _DENIED.search(clause.before):
        m = _DATED.match(clause.after, skip_directions(clause.after))
        m = m or _first_dated(clause.after)
        if m is not None and _kind(verb["cue"]) in ("start", "stop"):
            yield _kind(verb["cue"]), m["date"]


def _first_dated(after: str) -> re.Match[str] | None:
    """Return `on DATE` directly behind the directions; `on` is also a plain word."""
    for m in _DATED.finditer(after):
        if skip_directions(after[: m.start()]) == m.start():
            return m
    return None


def _dates_behind(text: str, *, is_quote: bool) -> Iterator[tuple[str, str]]:
    for m in _BEHIND.finditer(text):
        lead = text[: m.start()]
        if _DENIED.search(lead[-40:]) or not _is_own(lead, m["cue"], is_quote=is_quote):
            continue
        yield _kind(m["cue"]), m["date"]
        if m["last"] and _kind(m["cue"]) == "start":
            yield "stop", m["last"]
    for m in _SPAN.finditer(text):
        lead = text[: m.start()]
        if not is_quote and skip_directions(lead) == m.start():
            yield "start", m["date"]
            yield "stop", m["last"]


def _is_own(lead: str, cue: str, *, is_quote: bool) -> bool:
    """Return whether only directions, or a reason in its own phrase, precede a cue."""
    if is_quote:
        return True
    at = skip_directions(lead)
    while at < len(lead) and (m := _BEHIND.match(lead, at)):
        at = skip_directions(lead, m.end())
    if at >= len(lead):
        return True
    why = _FOR.match(lead, at)
    end = reason_end(lead, why.end()) if why else at
    closed = re.fullmatch(r"[,;.][ ]*(?:(?:was|which|and|it|first)[ ]+)*", lead[end:])
    # `for gout, since 2019` can be the time of the gout.
    return why is not None and end > why.end() and bool(closed) and cue.lower() != "since"


def _kind(cue: str) -> str:
    low = cue.lower()
    is_start = re.fullmatch(rf"{_STARTED}|start[ ]date", low, re.I) is not None
    return "start" if is_start else "stop"


def _reasons(facts: EntityFacts, clause: Clause, evidence: Evidence) -> Iterator[str]:
    for cell in cells_of(evidence, _WHY_COLUMN):
        if not _NO_REASON.fullmatch(cell) and not re.search(r"\d{4}|\d/\d", cell):
            yield cell
    head = evidence.sentence[: evidence.sentence.find(" ".join(evidence.quote.splitlines()))]
    if (m := _FOR_AHEAD.match(head)) and (why := _whole_reason(m["why"])):
        yield why
    if _AGAINST.search(clause.before):
        # `Stopped lisinopril for cough` names the reason of the end.
        return
    quote = " ".join(evidence.quote.split())
    directions = quote[len(facts.name) :] if quote.startswith(facts.name) else ""
    yield from _reason_behind(f"{directions}{clause.after}")
    is_row = evidence.row.rstrip(" .").endswith(clause.after.rstrip(" ."))
    is_listed = facts.zone_type == "medications" or any(
        _WHY_HEADING.search(each) for each in evidence.headings
    )
    if is_row and is_listed and (why := _whole_reason(clause.after.strip(" .,;-–"))):
        yield why


def _reason_behind(text: str) -> Iterator[str]:
    at = skip_directions(text)
    for _ in range(3):
        m = _BEHIND.match(text, at) or _DATE_HERE.match(text, at)
        if m is None:
            break
        if m.groupdict().get("cue") and _kind(m["cue"]) == "stop" and m["cue"][0] not in "tTuU":
            return
        at = skip_directions(text, m.end())
    if m := _IN_PARENTHESES.search(text[max(0, at - 1) : at + 64]):
        opened = max(0, at - 1) + m.start()
        if opened <= at and (why := _whole_reason(m["why"])):
            yield why
            return
    lead = _FOR.match(text, at)
    needed = re.search(r"(?:prn|as needed)[ ]*$", text[:at], re.I)
    begin = lead.end() if lead else at
    if lead is None and needed is None:
        return
    if why := _reason_at(text, begin):
        yield why


def _reason_at(text: str, at: int) -> str | None:
    if m := _USES.match(text, at):
        return m.group()
    end = reason_end(text, at)
    return text[at:end].strip() or None if end > at else None


def _whole_reason(words: str) -> str | None:
    """Return words that are one reason and nothing else."""
    lead = _FOR.match(words)
    words = words[lead.end() :] if lead else words
    found = _reason_at(words, 0)
    return found if found is not None and len(found) == len(words.strip()) else None
