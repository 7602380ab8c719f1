"""Whether the patient takes a medication: stopped, held, planned, declined, of another person.

A state is written before the name, after the directions, in the next statement, or as a heading
above a list.
"""

from __future__ import annotations

import re

from pipeline.providers.local.assertions.experiencer import person_kind
from pipeline.providers.local.document_state import DocumentState
from pipeline.providers.local.medications.cues import (
    ADMINISTRATION,
    ADMISSION,
    BEFORE_PATTERN,
    BEHIND,
    BEHIND_PATTERN,
    CONDITION,
    CONTINUED_HEADING,
    HEADING_PATTERN,
    HEADINGS,
    HOLD_LIMIT,
    IS_LIST,
    LIMIT_BEFORE,
    LONG_AGO,
    NEXT_STATEMENT,
    OTHER_BEFORE,
    OTHER_BEHIND,
    PLAIN_HEADING,
    RESUMED,
    START,
    START_LATER,
    STARTED_BEHIND,
    STOP_LATER,
    SWITCH_BEFORE,
    SWITCH_BEHIND,
    SWITCH_SOURCE,
    SWITCH_TARGET,
    SWITCHED_BEHIND,
    TOOK,
    UNTIL,
    State,
)
from pipeline.providers.local.medications.doubts import has_doubt_word

_MARKS = " :.,;\n-"
_MAX_HEADING_WORDS = 9
_MAX_LINES_UP = 60
_IS_REST = re.compile(
    r"[ ]*(?:(?:any|all)(?:[ ]of)?[ ](?:the[ ])?(?:following|these|them|below)"
    r"|taking|taken|using|use|today|this[ ]visit"
    r"|(?:by|per|at|on|upon|in|due[ ]to|until|since|for|during|after|before)[ ][A-Za-z/ -]{2,30}"
    r"(?=:))?[ ]*:?[ ]*",
    re.I,
)
_ASIDE = re.compile(r"[(\[](.*?)[)\]]")
_SOURCE = re.compile(
    r"^(?:as[ ])?(?:(?:reported|provided|given|listed|confirmed|reviewed|verified|reconciled)[ ])?"
    r"(?:per|from|by|with|according[ ]to|source:?)[ ][\w'’ /-]*",
    re.I,
)
"""A remark that only says who gave a list (`per wife's list`)."""
_STOPPED_ALREADY = re.compile(r"(?<!be )\b(?:stopped|discontinued|d/?c['’]?e?d)\b", re.I)
"""A drug that was stopped for a symptom is stopped; `stop for diarrhea` is a limit."""
_NOT_ENDED = re.compile(
    r"(?:\b(?:not|never|cannot|without|against|(?:refus|declin|hesita|unwilling|reluct|unable|afraid)"
    r"\w*[ ]to|no[ ](?:need|plans?|reason|intention|indication)[ ](?:to|for))|n['’]t)[ ]+"
    r"(?:(?:be|been|to|ever|yet|just|[a-z]+ly|want|wants|wish|going)[ ]+)*$",
    re.I,
)
"""Words that deny the end of a drug: `do not stop`."""
_PARTLY = re.compile(
    r"\b(?:some|several|most|many|certain|except|besides|but|if|unless|may|might|whether"
    r"|not[ ](?:all|yet|been|on|held|stopped)|none|never[ ](?:held|stopped)|no[ ]\w+[ ](?:held"
    r"|stopped))\b|\?",
    re.I,
)
"""Words that leave open which drugs of a list a remark means."""
_OPEN_HEADING = re.compile(
    r"(?=[^:]*\b(?:until|till|before|previous(?:ly)?|former(?:ly)?|past|last|prior|earlier|ago|old"
    r"|off|stop\w*|end(?:ed|ing)|finish\w*|quit|held|hold|not|no|never|without|refus\w*|declin\w*"
    r"|if|when|unless|may(?:be)?|might|consider\w*|plan\w*|ask\w*|other|history|used[ ]to|used"
    r"|was|were|had|did|tried|fail\w*|allerg\w*|intoleran\w*|mother|father|wife|husband|son"
    r"|daughter|brother|sister|donor|spouse|baby|child)\b)[A-Za-z][^:.]{2,70}:$",
    re.I,
)
"""A heading that no rule reads, with a word that can change the state of the drugs below."""


def state_of(
    reading: DocumentState,
    start: int,
    name_end: int,
    end: int,
    limit: int,
    floor: int,
    *,
    has_target: bool,
) -> State | None:
    """Return the state of the medication at `start`.

    `end` is the end of the directions, `limit` the start of the next medication, and `floor` the
    end of the medication before. `has_target` says that words about a later time belong to a
    planned dose.
    """
    text = reading.text
    sentence = reading.assertions.sentence_at(start)
    before = text[max(sentence.start, start - 160) : start].replace("\n", " ")
    tail = text[end : min(limit, end + 120)]
    after = _after(text, name_end, end, limit, sentence.end)
    if after in (State.HELD, State.NOT_TAKEN) and is_administration(reading, start):
        after = None
    line = text.rfind("\n", 0, start) + 1
    if text.count("~~", line, start) % 2:
        return State.STOPPED
    return (
        _other_person(before, tail)
        or _switched(before, text[end:limit], text[name_end:limit], limit < len(text))
        or after
        or _before(
            before,
            "" if has_target else tail.replace("\n", " "),
            floor - max(sentence.start, start - 160),
        )
        or _heading(reading, start)
    )


def _other_person(before: str, tail: str) -> State | None:
    m = OTHER_BEFORE.search(before) or OTHER_BEHIND.search(tail.split("\n")[0])
    if m is None:
        return None
    return State.RELATIVE if person_kind(m.group()) == "family" else State.OTHER_PERSON


def _switched(before: str, tail: str, behind: str, is_followed: bool) -> State | None:
    planned = [m.lastgroup for m in BEFORE_PATTERN.finditer(before)]
    if SWITCH_TARGET.search(before):
        return State.PLANNED if State.PLANNED.name in planned else State.ACTIVE
    if SWITCH_SOURCE.search(before):
        return State.ACTIVE if State.PLANNED.name in planned else State.PAST
    if not is_followed:
        return None
    if SWITCH_BEFORE.search(before) and SWITCH_BEHIND.match(tail):
        return State.ACTIVE if State.PLANNED.name in planned else State.PAST
    if SWITCHED_BEHIND.match(tail) or SWITCHED_BEHIND.match(behind):
        return State.PAST
    return None


def _after(text: str, name_end: int, end: int, limit: int, sentence_end: int) -> State | None:
    """Return the state that the words after the name or the next statement give."""
    reach = min(limit, max(end, sentence_end), end + 120)
    tails = [text[end:reach], text[name_end:reach]]
    if end <= sentence_end < limit:
        m = NEXT_STATEMENT.match(text, sentence_end, limit)
        # "Not taking" directly before the next medication is about the next medication.
        if m is not None and (limit == len(text) or text[m.end() : limit].strip(_MARKS)):
            tails.insert(0, text[sentence_end : m.end()].lstrip(". ;\n"))
    for tail in tails:
        m = BEHIND_PATTERN.search(tail)
        if m is None or m.lastgroup is None:
            continue
        if STOP_LATER.search(tail, m.start()) or RESUMED.search(tail, m.end()):
            return None
        is_last = not tail[m.end() :].strip(" ") and reach == limit < len(text)
        if is_last and re.match(r"[ ]*[,(:;–—-]|.*\band[ ]", m.group()):
            return None
        if is_last and re.search(r"(?:stop|hold|discontinue|holding)$", m.group(), re.I):
            return None
        return next((s for s, _ in BEHIND if m[s.name]), None)
    if STARTED_BEHIND.match(tails[-1]) or STARTED_BEHIND.match(text[end:reach]):
        return State.ACTIVE
    return None


def _before(before: str, tail: str, floor: int) -> State | None:
    """Return the state that the last verb before the name gives.

    `floor` is the end of the medication before: a verb directly there belongs to that medication.
    """
    found: State | None = None
    verb = ""
    for m in BEFORE_PATTERN.finditer(before):
        if m.lastgroup is None:
            continue
        state = State[m.lastgroup]
        is_behind_other = 0 < floor <= m.start() and not before[floor : m.start()].strip(" [(-–:,*")
        if is_behind_other and before[m.end() :].strip():
            continue
        if state in (State.STOPPED, State.HELD) and _NOT_ENDED.search(before, 0, m.start()):
            found = None
            continue
        found, verb = state, m.group()
    if found in (None, State.ACTIVE) and TOOK.search(before) and LONG_AGO.match(tail):
        return State.PAST
    if TOOK.search(before) and UNTIL.match(tail):
        return State.PAST
    if LIMIT_BEFORE.search(before):
        return State.PLANNED
    condition = CONDITION.search(before)
    if condition and found in (None, State.ACTIVE) and START.search(before, condition.end()):
        return State.PLANNED
    has_limit = HOLD_LIMIT.match(tail) is not None and not _STOPPED_ALREADY.search(verb)
    if found in (State.HELD, State.STOPPED) and (condition or has_limit):
        return State.ACTIVE
    if found is State.ACTIVE:
        later = START.search(before) and START_LATER.match(tail)
        return State.PLANNED if later else State.ACTIVE
    return found


def is_administration(reading: DocumentState, start: int) -> bool:
    """Return whether a row records single doses; one refused dose does not stop a medication."""
    zone = reading.zones.at(start)
    return zone is not None and bool(ADMINISTRATION.search(zone.heading or ""))


def _heading(reading: DocumentState, start: int) -> State | None:
    """Return the state that the nearest heading above a list gives to the list."""
    return _heading_above(reading, start)[0]


def _heading_above(reading: DocumentState, start: int) -> tuple[State | None, bool]:
    """Return the state of the nearest heading above a list, and whether its words are open."""
    zone = reading.zones.at(start)
    top = zone.start if zone else 0
    end = reading.text.rfind("\n", 0, start)
    for _ in range(_MAX_LINES_UP):
        if end < top:
            break
        begin = reading.text.rfind("\n", 0, end) + 1
        line = reading.text[begin:end].strip(" \t-•*#=_")
        # The cells of a table's header name columns: `Drug`, `Start`, `Stop`.
        if line and "\t" not in reading.document.raw[begin:end]:
            state, is_heading = _as_heading(line)
            if is_heading:
                return state, _is_open(line, state)
            if line.endswith(":") and _OPEN_HEADING.match(line):
                return None, True
        end = begin - 1
    if zone is not None and zone.heading and zone.zone in ("medications", "other"):
        state = _as_heading(zone.heading + ":")[0]
        return state, _is_open(zone.heading, state)
    return None, False


def _is_open(line: str, state: State | None) -> bool:
    """Return whether a heading says something about its list that no rule understands."""
    if state is None:
        remarks = _ASIDE.findall(line)
        return any(has_doubt_word(_SOURCE.sub("", ADMISSION.sub("", remark))) for remark in remarks)
    return _PARTLY.search(line) is not None


def is_below_open_heading(reading: DocumentState, start: int) -> bool:
    """Return whether the lines above a medication leave open whether the drug is taken."""
    above = reading.text.rfind("\n", 0, start)
    line = reading.text[reading.text.rfind("\n", 0, above) + 1 : above] if above > 0 else ""
    return _is_lone_state(line) or _heading_above(reading, start)[1]


def is_above_lone_state(reading: DocumentState, end: int) -> bool:
    """Return whether the line below a medication is a state that can belong to the next drug."""
    below = reading.text.find("\n", end)
    if below < 0 or reading.text[end:below].strip(" .;"):
        return False
    return _is_lone_state(reading.text[below + 1 :].partition("\n")[0])


def _is_lone_state(line: str) -> bool:
    """Return whether a line is a state that belongs to the drug above or to the list below."""
    words = line.strip(" \t-•*#=_.")
    m = HEADING_PATTERN.match(words)
    if m is None or words.endswith(":") or words.isupper() or not m[m.lastgroup or 0]:
        return False
    state = next(s.name for s, _ in HEADINGS if m[s.name])
    return (
        m.start(state) == 0
        and not _IS_REST.fullmatch(m["rest"])
        and _IS_REST.fullmatch(m["rest"] + ":") is not None
    )


def is_heading(line: str) -> bool:
    """Return whether a line is the heading of a list of medications."""
    return _as_heading(line.strip(" \t-•*#=_"))[1]


def _as_heading(line: str) -> tuple[State | None, bool]:
    """Return the state that a line gives to the list below, and whether the line is a heading."""
    words = re.sub(r"[(].*?[)]", "", line).strip()
    if (
        len(words.split()) > _MAX_HEADING_WORDS
        or words.endswith(".")
        or re.search(r"\d[ ]?m", words)
    ):
        return None, False
    m = HEADING_PATTERN.match(words)
    is_titled = words.endswith(":") or words.isupper() or bool(IS_LIST.search(words))
    if CONTINUED_HEADING.fullmatch(words):
        return None, True
    if not is_titled and not (m and _IS_REST.fullmatch(m["rest"])):
        return None, False
    if m is not None and m.lastgroup and not ADMISSION.search(words):
        name = next(s.name for s, _ in HEADINGS if m[s.name])
        rest = m["rest"].removesuffix(":") + ":" if words.isupper() else m["rest"]
        if IS_LIST.search(words) or _IS_REST.fullmatch(rest):
            return State[name], True
    if not PLAIN_HEADING.match(words):
        return None, False
    return _of_remark(" ".join(_ASIDE.findall(line))), True


def _of_remark(remark: str) -> State | None:
    """Return the state that a remark in a heading gives to the whole list."""
    m = HEADING_PATTERN.match(ADMISSION.sub("", remark))
    if m is None:
        return None
    state = next(s for s, _ in HEADINGS if m[s.name])
    # `(past 30 days)` names the time of a list, not the end of a therapy.
    return None if state is State.PAST else state
