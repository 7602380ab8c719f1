"""Laboratory values in running text: one value, several values, earlier values.

A goal, a threshold, a condition or a change is no value. A number is read only if the words between
name and number, and the characters behind the number, are explained.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from pipeline.providers.local.labs.analytes import Analyte
from pipeline.providers.local.labs.brackets import speaks_of_another
from pipeline.providers.local.labs.dated_values import (
    DatedValue,
    SeriesDates,
    dated_values,
    lead_of,
)
from pipeline.providers.local.labs.patterns import (
    BETWEEN,
    BOUND,
    MISREAD,
    NUM,
    POWER,
    RANGE_LABEL,
    SIGN,
    TITER,
    UNIT,
    figure,
    printed,
)
from pipeline.providers.local.labs.unexplained_numbers import (
    has_further_value,
    has_further_word,
    is_taken_back,
)
from pipeline.providers.local.text.latest_reading import Moment
from pipeline.providers.schemas import Temporality


@dataclass(frozen=True, slots=True)
class ProseValue:
    """One value behind an analyte's name."""

    value: str
    end: int
    unit: str | None = None
    reference_range: str | None = None
    flag: str | None = None
    temporality: Temporality | None = None
    day: str | None = None
    """The date of the value, as ISO 8601."""


@dataclass(frozen=True, slots=True)
class ProseStatement:
    """The values behind a name; no values if the words state none."""

    values: tuple[ProseValue, ...] = ()
    understood: bool = True
    """A statement with an unexplained number is not understood and has values to quote only."""
    when: Moment | None = None
    """The date of the only value."""
    lead: re.Match[str] | None = None
    """The words of time before the name, which hold for the next names of a list as well."""


_TIME_WORDS = (
    r"(?:today|yesterday|now|currently|most[ ]recent(?:ly)?|this[ ](?:morning|afternoon|evening"
    r"|week|visit|admission)|tonight|overnight|on[ ](?:admission|arrival|presentation|discharge)"
    r"|initial(?:ly)?|at[ ](?:admission|arrival|presentation|discharge|baseline)"
    r"|at[ ](?:the[ ])?last[ ]visit|last[ ](?:year|month|week|visit)|previously|earlier)"
)
_LINK = (
    rf"(?:[ \n]*(?:,?[ ]*(?:{_TIME_WORDS}|level|levels|count|value|result|concentration|reading"
    r"|trough|peak|of|is|was|were|at|to|has|been|remains?|remained"
    r"|stable|elevated|decreased|low|high|normal|up|down|improved|increased|rose|fell|returned"
    r"|came[ ]back|back|from|resulted|found|be|just|about|approximately|around|on|in|the|and|then"
    r"|went|dropped|trended|trending|risen|fallen|climbed|peaked|measured|noted|worsened"
    r"|\d{1,2}/\d{1,2}(?:/\d{2,4})?(?![\d/.]))"
    r"(?![\w/])|:|=|~|[ ]-(?=[ ]))){0,6}[ \n]*"
)
_GOAL_LINK = re.compile(
    r"[ ]*(?:level|levels)?[ ]*(?:goals?|targets?|thresholds?|cut-?offs?|triggers?|limits?|should"
    r"|needs?[ ]to|must|to[ ]be|(?:is|if|falls?|drops?|rises?|goes|gets|remains?|stays|becomes)"
    r"[ ](?:above|below|over|under|greater|less|more|higher|lower|[<>≤≥])"
    r"|(?:falls?|drops?|rises?|goes|gets)\b)",
    re.I,
)
_DELTA_WORD = (
    r"(?:up|down|increased|decreased|dropped|fell|rose|risen|fallen|declined|climbed|improved"
    r"|worsened|trended[ ](?:up|down)|trending[ ](?:up|down)|higher|lower)"
)
_DELTA = re.compile(
    rf"[ ]*,?[ ]*(?:(?:is|was|has|had|have|been|went|now|is[ ]now|then)[ ]+)*{_DELTA_WORD}[ ]+"
    rf"(?:(?:by|about|approximately|another|around|almost|nearly|~)[ ]*)*(?={NUM}|~)",
    re.I,
)
_MORE_THAN_BEFORE = re.compile(
    r"[ ]*(?:points?[ ])?(?:higher|lower|above|below|over|under|more|less)[ ]"
    r"(?:than|from|since|(?:the[ ]|her[ ]|his[ ])?(?:baseline|prior|previous|last))"
    r"|[ ]*(?:point|fold|percentage)\b|[ ]*(?:increase|decrease|drop|rise|decline)\b",
    re.I,
)
_VALUE = re.compile(
    rf"(?P<value>[1-4]\+(?!\d)|{TITER}|(?:{SIGN}[ ]?)?(?:{NUM})(?:[kK](?!\w))?)"
    rf"(?![\d/]|'?s\b|[.,]\d|[:;]\d|-\d"
    rf"|{MISREAD}"
    rf"|[ ]?(?:-|–|to)[ ]?{SIGN}?\d+(?:\.\d+)?[ ]?(?:mg|mcg|units)\b(?!/)"
    rf"|[ ]+(?!{POWER})\d+(?:\.\d+)?(?![\d/:.-]"
    r"|[ ]?(?:hours?|hrs?|days?|weeks?|months?|years?|units?)\b)"
    r"|[ ]?(?:x/|times|years?\b|days?\b|weeks?\b|hours?\b|hrs?\b"
    r"|(?-i:h)\b|min(?:utes?)?\b|wks?\b|yrs?\b"
    r"|months?\b|yo\b|am\b|pm\b|tab|pill|mg[ ]|mg\b(?!/)|mcg\b(?!/)|g\b(?!/)|mL\b(?!/)|IV|PO"
    r"|units\b|packets?|mEq[ ](?:PO|IV|daily|x)|(?:of[ ])?(?:tests|samples|patients)\b))"
    rf"(?:[ ]?(?P<unit>{UNIT})(?![\w/]))?"
    r"(?:[ ]?(?:\((?P<flag1>HH|LL|H|L)\)|(?P<flag2>HH|LL|H|L)(?![\w/'])))?"
    rf"(?:[ ]?[\[(](?:{RANGE_LABEL})?(?P<range>{BETWEEN}|{BOUND})(?:[ ]?(?:{UNIT}))?[\])])?",
    re.I,
)
_START = re.compile(rf"(?:[ ]*\((?!\d)[^)\n]{{1,16}}\))?{_LINK}", re.I)
_NEXT = re.compile(
    rf"[ ]*,?[ ]*(?P<arrow>-{{1,2}}>|=>|→|➔|➜|»)[ ]*"
    rf"|[ ]*(?:\([^)\n\d]{{1,16}}\)[ ]*)?,?[ ]*(?:and[ ]|but[ ])?(?:(?:is|was|has)[ ])?"
    rf"(?P<turn>(?:then|now|today|currently|followed[ ]by|up|down|back[ ]up|back[ ]down"
    rf"|{_DELTA_WORD}|trended|trending|subsequently|later|repeat|peaked)"
    rf"(?:[ ](?:to|at|of|is|was|up|down|now|currently))*[ ]*:?[ ]*)(?={SIGN}|\d|\.\d)"
    r"|(?P<comma>[ ]*,[ ]*(?:and[ ]|then[ ])?)(?=[<>]?\d|\.\d)"
    r"|(?P<from>[ ]*,?[ ]*(?:\([ ]?)?(?:down[ ]|up[ ])?(?:from|versus|vs\.?|compared[ ](?:to|with)"
    r"|was|baseline|previously|prior|prev)(?:[ ](?:a|the))?(?:[ ](?:baseline|previous|prior))?"
    r"(?:[ ](?:of|at|value[ ]of|level[ ]of|was))?[ ]*:?[ ]*)(?=\d|\.\d|[<>≤≥])",
    re.I,
)
_SPREAD = re.compile(r"[ ](?:to|through|or)[ ](?:\d|\.\d)", re.I)
"""A second number that makes the first number one end of a range."""
_CHANGE_BEFORE = re.compile(
    r"\b(?:delta|(?:change|difference|increase|decrease|drop|fall|rise|decline|reduction"
    r"|improvement)[ ](?:in|of))[ ]+(?:the[ ]|her[ ]|his[ ]|serum[ ])?$",
    re.I,
)
_FROM_TO = re.compile(rf"[ ]+(?:to|now|->|→)[ ]+(?:now[ ]+|a[ ]|at[ ])*(?={SIGN}|\d)", re.I)
_LIST_END = re.compile(r"[ ]*(?:[,.;)\n]|$|and[ ]\d|then[ ]\d|->|→|on[ ]|mg/dL)")
_PAIR = re.compile(
    r"[ ]*(?::|of|was|is|=)?[ ]*(?P<value>\d{1,2}(?:\.\d)?[ ]?/[ ]?\d{1,2}(?:\.\d)?)(?![\d/])"
)
_WORD_VALUE = re.compile(
    r"(?:[ \n]*(?:test|screen|result|level|titer|today|(?:is|was|were|came[ ]back|returned"
    r"|:)))*[ \n]*(?P<value>non-?reactive|reactive|not[ ]detected|negative|positive|neg|pos|trace"
    rf"|(?:{SIGN}[ ]?)?1:\d{{1,6}})(?![\w/])(?![ ]+(?:for|if)\b)",
    re.I,
)
_GOAL_BEFORE = re.compile(
    r"\b(?:(?:upper|lower)[ ]limits?(?:[ ]of[ ]normal)?|normal|typical|usual|goals?|targets?"
    r"|targeting|thresholds?|cut-?offs?|triggers?|aim(?:ing)?|desired|ideal"
    r"|optimal)\b(?:[ ]+(?:for|of|is|was|range|the|her|his|your|their|a|an|serum|fasting|blood|"
    r"level|to|keep|maintain|remains|with))*[ ]*:?[ ]*$",
    re.I,
)
_CONDITION_BEFORE = re.compile(
    r"(?:^|\b)(?:if|unless|whenever|until|in[ ]case|as[ ]long[ ]as|provided|once|prn|should)\b"
    r"[^.;]*$"
    r"|\b(?:keep|maintain|replete|replace|correct|titrat(?:e|ed|ing)|repletion|optimize|bring|get"
    r"|goal[ ]is|aim|supplement)\b[^.;,]*$"
    r"|\b(?:call|notify|page|alert|contact|inform|return|hold|transfuse|give|treat|stop|start|seek"
    r"|come[ ]back|go[ ]to|recheck|repeat|report|withhold|cancel|bolus|discontinue|resume|defer"
    r"|consider|proceed|dose|redose|restart|reduce|increase|decrease)\b"
    r"[^.;]*\b(?:for|if|when|at|with|below|above|until|unless|once|while|keep|maintain)\b[^.;]*$"
    r"|\b(?:units?|mg|mcg|mEq|tabs?|tablets?|grams?|doses?)\b[^.;,]*\b(?:for|if|when)\b[^.;,]*$"
    r"|\bto[ ](?:report|call|notify)\b[^.;]*$"
    r"|\b(?:thresholds?|triggers?|cut-?offs?|targets?|goals?|indications?)[ ](?:for|to)\b[^.;,]*"
    r"\b(?:is|of|at|are|remains?)(?:[ ](?:an?|the|his|her|our|any|serum))*[ ]*$"
    r"|\b(?:parameters?|sliding[ ]scale|transfusion[ ]threshold|eligib\w+|requires?|required|needs?"
    r"|criteria)\b[^.;]*$"
    r"|\bwhen(?:ever)?\b(?![^.;]*\b(?:was|were|had|found|presented|arrived|seen)\b)[^.;]*$"
    r"|\b(?:for[ ]example|examples?|for[ ]instance|e\.?g\.?|hypothetical(?:ly)?|sample[ ]report)"
    r"[:,.]?[^.;]*$",
    re.I,
)
_PAST_ACTION = re.compile(
    r"\b(?:called|transfused|given|treated|held|noted|found|received|gave|got|administered)\b", re.I
)
_CONDITION_AFTER = re.compile(
    r"[ ]*(?:(?:is|are|be|being)[ ])?(?:(?:the|her|his|our|a)[ ])?(?:required|needed|desired"
    r"|necessary|preferred|goals?|targets?|thresholds?|mandatory|acceptable|recommended"
    r"|before[ ](?:the[ ])?(?:procedure|surgery|operation|biopsy|chemo\w*|discharge|dose|next)"
    r"|prior[ ]to[ ](?:the[ ])?(?:procedure|surgery|operation|biopsy|chemo\w*|discharge)"
    r"|or[ ](?:more|higher|greater|less|above|below|over|under|lower))\b"
    r"|[ ]*(?:was|were|is)[ ](?:misread|erroneous|wrong|spurious|entered[ ]in[ ]error|an?[ ]error)"
    r"|[ ]*\((?:goal|target)\)"
    r"|[ ]*(?:would|might)[ ](?:be|require|mean|prompt|trigger|warrant|need|suggest|indicate"
    r"|call[ ]for|have)\b"
    r"|[ ]*(?:is|are|was)[ ](?:an?|the|our)[ ](?:reason|indication|trigger|threshold|cut-?off"
    r"|contraindication|criterion|goal|target|limit)\b"
    r"|[ ]*(?:->|→|:|,)[ ]*(?:give|call|notify|hold|transfuse|replete)\b",
    re.I,
)
_MODAL = re.compile(
    r"[ ]*(?:should|would|must|will|may|warrants?|requires?|prompts?|needs?|triggers?|means"
    r"|indicates?|suggests?|qualif\w+|is[ ](?:diagnostic|abnormal|normal|considered|low|high))\b",
    re.I,
)
"""Behind a bound: the bound is a threshold."""
_EARLIER_BEFORE = re.compile(
    r"\b(?:previous|prior|baseline|old|former|outside|past|pre-?(?:op|operative|admission"
    r"|transfusion)|earlier|nadir|peak(?:ed)?|lowest|highest)[ ]+(?:serum[ ]|blood[ ]|known[ ]"
    r"|recorded[ ]|measured[ ])?$"
    r"|\b(?:previous|prior|baseline|last[ ](?:year|month))(?:'s)?[ ]+(?:\w+[ ]){0,2}$",
    re.I,
)
_LAST_BEFORE = re.compile(r"\b(?:last|most[ ]recent)[ ]+(?:known[ ]|recorded[ ]|serum[ ])?$", re.I)
_MONTH = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*\.?"
_EARLIER_AFTER = re.compile(
    r"[ ]*[,(]?[ ]*(?:(?:about|approximately|roughly|over|almost|nearly)[ ])?(?:"
    r"(?:\d+|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|several|many|few"
    r"|a[ ]few|a[ ]couple(?:[ ]of)?|a|an|some)[ ](?:years?|months?|weeks?|days?|yrs?|mos?|wks?)[ ]"
    r"(?:ago|prior|earlier|before|back)"
    rf"|(?:in|since|back[ ]in|from(?=[ ][A-Za-z]))[ ](?:early[ ]|late[ ]|mid-?)?"
    rf"(?:{_MONTH}(?:[ ]of)?,?[ ])?"
    r"(?:19|20)\d\d"
    rf"|(?:in|from|since|back[ ]in|last)[ ]{_MONTH}(?!\w)"
    r"|(?:in|from)[ ]\d{1,2}/(?:19|20)\d\d"
    r"|last[ ](?:year|month|week|visit|time|spring|summer|fall|autumn|winter|check|admission)"
    r"|at[ ](?:the[ ]|her[ ]|his[ ])?(?:last|previous|prior)[ ](?:visit|check|admission"
    r"|appointment)"
    r"|yesterday|the[ ]day[ ]before"
    r"|(?:at[ ])?(?:(?:its|the|her|his)[ ])?(?:nadir|peak|lowest|highest)"
    r"|at[ ]baseline|previously|(?:on|at)[ ]the[ ]prior[ ](?:visit|check)|the[ ]year[ ]before"
    r"|before[ ](?:treatment|therapy|admission|transfusion)|pre-?op(?:eratively)?"
    r"|the[ ]previous[ ](?:year|month|week|day|visit))\b"
    r"(?![ ]*(?:was|at|of|:)?[ ]*[<>≤≥]?=?[ ]?\d)",
    re.I,
)
_NOW = re.compile(
    rf"[)]?[ ]*[,;]?[ ]*(?:and|but|which)?[ ]*(?:it[ ])?(?:is[ ]|was[ ])?"
    rf"(?:now|today|currently|this[ ]visit|most[ ]recently)(?:[ ](?:is|at|it[ ]is|down[ ]to"
    rf"|up[ ]to))?[ ]*:?[ ]*(?={SIGN}|\d)",
    re.I,
)
_EARLIER_LINK = re.compile(
    r"\b(?:at[ ](?:the[ ])?last[ ]visit|last[ ](?:year|month|week|visit)|previously|at[ ]baseline"
    r"|in[ ](?:19|20)\d\d)\b|\bbaseline\b|\bhad[ ]been\b|\b(?:nadir|peak)(?:ed|s)?\b",
    re.I,
)


_DISPENSED = re.compile(r"#[ ]?\d+[ ,;.]*$|\b(?:disp|dispense|qty|quantity)\b[^.;\n]*$", re.I)
"""The number of tablets before `RF`, which then means refills and no rheumatoid factor."""


def states_no_value(text: str, first: int, start: int, end: int) -> bool:
    """Return whether the words around the name at `start..end` name a goal or a condition.

    `first` is the start of the sentence.
    """
    before = text[max(first, start - 120) : start].replace("\n", " ")
    if text[start:end].upper() == "RF" and _DISPENSED.search(before):
        return True
    if _GOAL_BEFORE.search(before) or _GOAL_LINK.match(text, end):
        return True
    return bool(_CONDITION_BEFORE.search(before)) and not _factual(before, text, end)


def _factual(before: str, text: str, end: int) -> bool:
    """Return whether the name's verb tells of the past, and no `if` opens the sentence."""
    if re.search(r"\b(?:if|unless|in[ ]case|should)\b", before, re.I):
        return False
    return bool(
        re.match(
            r"[ ]*(?:level[ ])?(?:was|were|came[ ]back|returned|today|now)\b", text[end : end + 20]
        )
    ) or (bool(_PAST_ACTION.search(before)) and not re.match(r"[ ]*[<>]", text[end : end + 3]))


def inherits(text: str, previous_end: int, start: int) -> bool:
    """Return whether the name at `start` continues a list (`keep K > 4 and Mg > 2`)."""
    between = text[previous_end:start]
    return len(between) <= 24 and bool(
        re.fullmatch(
            r"[^a-z.;]{0,12}(?:\b(?:and|or)\b[ ]*|,[ ]*|/[ ]*|&[ ]*)(?:and[ ])?(?:serum[ ])?",
            between,
            re.I,
        )
    )


def statement_behind(
    text: str,
    place: tuple[int, int, int, int],
    analyte: Analyte,
    times: SeriesDates,
    inherited: re.Match[str] | None = None,
) -> ProseStatement:
    """Return what the words behind a name state.

    `place` is the start of the sentence, the start and end of the name, and the sentence's end.
    `inherited` are the words of time before the list that the name is in.
    """
    first, start, end, limit = place
    far = _end_of_paragraph(text, end, limit)
    lead = lead_of(text, first, start) or inherited
    if analyte.name != "H/H" and not _DELTA.match(text, end, limit):
        dated = dated_values(text, end, far, _VALUE, lambda m: _possible(m, analyte), times, lead)
        if dated is not None:
            values = _with_unit([_of_dated(item) for item in dated.values])
            further = has_further_value(text, dated.end, max(limit, dated.end), analyte)
            further = further or is_taken_back(text, dated.end, max(limit, dated.end))
            if not _MORE_THAN_BEFORE.match(text, dated.values[0].value.end(), limit):
                when = dated.values[0].when if len(values) == 1 else None
                return ProseStatement(values, dated.understood and not further, when, lead)
    if not analyte.units:
        words = dated_values(text, end, far, _WORD_VALUE, lambda _: True, times, lead)
        if words is not None:
            values = tuple(_of_dated(item) for item in words.values)
            when = words.values[0].when if len(values) == 1 else None
            return ProseStatement(values, words.understood, when, lead)
    found = values_behind(text, first, start, end, limit, analyte)
    if found and speaks_of_another(text, found[-1].end):
        return ProseStatement(tuple(found), understood=False)
    if found and is_taken_back(text, found[-1].end, limit):
        return ProseStatement(tuple(found), understood=False)
    if len(found) == 1 and has_further_word(text, found[0].end, limit, found[0].value):
        return ProseStatement(tuple(found), understood=False)
    further = bool(found) and has_further_value(text, found[-1].end, limit, analyte)
    return ProseStatement(_with_unit(found), not further)


def _with_unit(values: list[ProseValue]) -> tuple[ProseValue, ...]:
    """Give a unit behind the last of several values to all of them (`35 -> 32 g/L`)."""
    unit = values[-1].unit if values else None
    if unit is None or any(value.unit for value in values[:-1]):
        return tuple(values)
    return tuple(replace(value, unit=unit) for value in values)


def _end_of_paragraph(text: str, end: int, limit: int) -> int:
    """Return where a series of dated values can end at the latest, past the sentence's end."""
    blank = text.find("\n\n", end)
    return max(limit, min(len(text) if blank < 0 else blank, end + 400))


def _of_dated(item: DatedValue) -> ProseValue:
    read = _read(item.value)
    return replace(
        read,
        end=item.end,
        temporality="historical" if item.earlier else None,
        day=item.when.day if item.when else None,
    )


def values_behind(
    text: str, first: int, start: int, end: int, limit: int, analyte: Analyte
) -> list[ProseValue]:
    """Return the values behind the name at `text[start:end]`, in their order."""
    if analyte.name == "H/H":
        m = _PAIR.match(text, end, limit)
        return [ProseValue(m["value"], m.end())] if m else []
    if _DELTA.match(text, end, limit):
        return []
    before = text[max(first, start - 60) : start]
    lead = _START.match(text, end, limit)
    at = lead.end() if lead else end
    m = _VALUE.match(text, at, limit)
    if m is None:
        return list(_in_words(text, end, limit, analyte))
    if m["value"][0] in "<>≤≥" and _MODAL.match(text, m.end(), limit):
        return []
    if not _possible(m, analyte) or _MORE_THAN_BEFORE.match(text, m.end(), limit):
        return []
    link = text[end : m.start()]
    spread = not re.search(r"\bfrom[ ]+$", link, re.I) and _SPREAD.match(text, m.end(), limit)
    if spread or _CONDITION_AFTER.match(text, m.end(), limit):
        return []
    if _CHANGE_BEFORE.search(before) and not re.search(r"\bto\b", link):
        return []
    if re.search(r"[-+]$", link.rstrip("=")) and not link.endswith((" - ", "- ")):
        return []
    found = [_read(m)]
    last = m
    if re.search(r"\bfrom[ ]+$", link, re.I):
        return _after_from(text, limit, analyte, m)
    while len(found) < 12:
        step = _NEXT.match(text, last.end(), limit)
        later = _VALUE.match(text, step.end(), limit) if step else None
        if step is None or later is None or not _possible(later, analyte):
            break
        if step["turn"] and not step["arrow"] and _is_change(step["turn"]):
            break
        if step["comma"] and not _same_kind(text, last, later, limit):
            break
        value = _read(later)
        if step["from"]:
            found.append(_as_earlier(value))
            break
        found.append(value)
        last = later
    past = _EARLIER_BEFORE.search(before) or _EARLIER_LINK.search(link)
    when = _EARLIER_AFTER.match(text, m.end(), limit)
    if when and len(found) == 1:
        tail = _NOW.match(text, when.end(), limit)
        later = _VALUE.match(text, tail.end(), limit) if tail else None
        if later and _possible(later, analyte):
            found.append(_read(later))
    if past or when or (_LAST_BEFORE.search(before) and len(found) > 1):
        found[0] = _as_earlier(found[0])
    return found


def _after_from(text: str, limit: int, analyte: Analyte, m: re.Match[str]) -> list[ProseValue]:
    """Read `from 0.9 to 1.4`: the first value is an earlier value."""
    step = _FROM_TO.match(text, m.end(), limit)
    later = _VALUE.match(text, step.end(), limit) if step else None
    if later is None or not _possible(later, analyte):
        return []
    return [_as_earlier(_read(m)), _read(later)]


def _is_change(turn: str) -> bool:
    """Return whether the words before a number say by how much a value changed."""
    return bool(re.fullmatch(rf"{_DELTA_WORD}[ ]*", turn.strip(), re.I))


def _same_kind(text: str, one: re.Match[str], other: re.Match[str], limit: int) -> bool:
    """Return whether a number behind a comma is a further value of the same test."""
    units = (one["unit"], other["unit"])
    if units[0] and units[1] != units[0]:
        return False
    if not _LIST_END.match(text, other.end(), limit) and other.end() < limit:
        return False
    return ("." in one["value"]) == ("." in other["value"]) and text[
        one.end() : one.end() + 1
    ] != "("


def _possible(m: re.Match[str], analyte: Analyte) -> bool:
    if ":" in m["value"]:
        return not analyte.units or analyte.name in ("ANA",)
    return analyte.low <= figure(m["value"]) <= analyte.high


def _read(m: re.Match[str]) -> ProseValue:
    parts = m.groupdict()
    return ProseValue(
        value=printed(m["value"]) or "",
        end=m.end(),
        unit=printed(parts.get("unit")),
        reference_range=printed(parts.get("range")),
        flag=parts.get("flag1") or parts.get("flag2"),
    )


def _as_earlier(value: ProseValue) -> ProseValue:
    return ProseValue(
        value.value, value.end, value.unit, value.reference_range, value.flag, "historical"
    )


def _in_words(text: str, end: int, limit: int, analyte: Analyte) -> Iterator[ProseValue]:
    m = _WORD_VALUE.match(text, end, limit)
    if m is not None and (not analyte.units or analyte.name.startswith(("Troponin", "hCG", "ANA"))):
        yield ProseValue(printed(m["value"]) or "", m.end())
