"""Words around a medication that no rule has explained and that can change its meaning.

The state rules explain most such words. A word that is left makes the line not understood, because
the drug may be the cause of a symptom, may be missed, or may belong to another time.
"""

from __future__ import annotations

import re

from pipeline.clinical.medications.sig import DOSE
from pipeline.providers.local.medications.cues import (
    BEFORE_PATTERN,
    CHANGE_BEFORE,
    HOLD_LIMIT,
    SWITCH_BEFORE,
    SWITCH_TARGET,
    TITRATE_BEFORE,
)

_EITHER = (
    r"caus(?:e[sd]?|ing)|\w*-induced|induced[ ]by|side[ ]effects?|adverse(?:ly)?|reactions?"
    r"|allergic[ ](?:to|reactions?)|intoleran\w+"
    r"|hives|angioedema|anaphyla\w+|overdos\w+|ingest\w+|intoxicat\w+|toxicity|poison\w*"
    r"|suicid\w+|unsure|unclear|uncertain|unknown|unconfirmed|unverified|whether|maybe|perhaps"
    r"|possibl[ey]|probabl[ey]|questionable|thinks|supposed[ ]to|meant[ ]to|mistake\w*|error"
    r"|erroneous\w*|wrong|incorrect\w*|accidental\w*|duplicate|ran[ ]out|runs?[ ]out|out[ ]of"
    r"|non-?complian\w+|non-?adheren\w+|instead|rather|versus|vs|unless|if(?![ ](?:needed"
    r"|required|necessary))|pending|unable|cannot|can't|not|never|denie[sd]|denying|nor|neither"
    r"|without[ ](?:relief|benefit|effect|response|success)|ineffective|unhelpful|failed|unlikely"
    r"|refus\w+|declin\w+|ago|previous(?:ly)?|former(?:ly)?|in[ ]the[ ]past"
    r"|last[ ](?:month|year|winter|spring|summer|fall|autumn)|in[ ](?:19|20)\d\d|back[ ]then"
    r"|until|past|prior|stop(?:s|ped|ping)?|discontinu\w+|d/c|dc'?e?d|quit|ceas(?:e|ed|ing)"
    r"|cancell?ed|hold(?:s|ing)?(?![ ]+(?:for|if|when)\b)|held|paus\w+|suspend(?:ed)?|withh\w+"
    r"|wean\w*|expired|ended"
    r"|replac(?:e|ed|es|ing)|substitut\w+|swap\w*|switch\w*|convert\w*|chang(?:ed?|ing)"
    r"|differently|doubl(?:ed|ing)(?!\s+(?:the\s+)?(?:next|following))|tripl(?:ed|ing)|halv(?:e"
    r"|ed|ing)|avoid\w*|withdr\w+"
    r"|remov(?:ed?|al)|borrow\w*|leftover|(?:wife|husband|spouse|partner|mother|father|mom|dad"
    r"|brother|sister|son|daughter|friend|neighbou?r|room-?mate|donor|dog|cat)"
    r"(?![ ](?:says?|said|reports?|reported|states?|stated|notes?|gives?|gave|confirms?|helps?"
    r"|fills?|manages?|thinks|tells|told|administers?|brought|brings|is[ ]giving)\b)"
    r"|placebo|research"
    r"|hypothetical\w*|no[ ]fills?|in[ ]the[ ](?:house|cabinet)|but[ ](?:takes?|took|uses?|taking)"
)
_WORDS = re.compile(rf"(?<![\w'-])(?:{_EITHER})(?![\w-])|n['’]t\b|\?", re.I)
_BEFORE = re.compile(
    r"(?<![\w-])(?:interactions?|between|positive[ ]for|uds|utox|toxicology|drug[ ]screen|off"
    r"|tried|trial|toxic|due[ ]to|because[ ]of|secondary[ ]to|after|attempt"
    r"|recommend\w*|suggest\w*|advis\w+|propos\w+|request\w*|wants?|wish\w*|asks?|asked|prefer\w*"
    r"|should|when|once|while|rash(?:es)?|no|were|lists?|listed|versus|options?|alternatives?"
    r"|plan(?:s|ned|ning)?(?!:)|next[ ]step|discuss\w*|need(?:s|ed)?|require[sd]?"
    r"|completed|finished"
    r"|history|hx|used[ ]to|on[ ]hold|half[ ]of|\w*exce(?:ed|ss)\w*|max(?:imum)?|missed|missing"
    r"|skip\w*|forgot\w*|(?:last|final)[ ](?:doses?|refill|prescription|fill|injection"
    r"|taken|took|given)"
    r"|there[ ](?:is|are|was|were)|(?:bottles?|box(?:es)?|packs?|supply|stash)[ ]of|access[ ]to"
    r"|(?:\d+|one|two|three|four|several|some)[ ]of[ ](?:his|her|their|the|my)"
    r"|finds?|found)(?![\w-])",
    re.I,
)
_BEHIND = re.compile(
    r"(?<![\w-])(?:half(?![ -](?:life|hour|an?[ ]hour))|house"
    r"|household|cabinet|drawer|cupboard|purse|garage|iii?"
    r"|when(?![ ](?:needed|necessary|required|sick))|off|no[ ]longer|poorly"
    r"|badly|but[ ](?:is|was|has|now|he|she|takes?"
    r"|only)|actually"
    r"|only[ ](?:when|if|on)|once(?=[ ]\w+[ ])|after[ ]discharge|at[ ]discharge"
    r"|recommended|suggested|offered|proposed|advised|requested|wants?|would|could|might|should"
    r"|plan(?:s|ned)?|to[ ]be[ ](?:started|given|taken|resumed|held)|tomorrow|completed|finished"
    r"|rash(?:es)?|no[ ](?:relief|benefit|effect|response)|increas(?:ed?|ing)|decreas(?:ed?|ing)"
    r"|reduc(?:ed?|ing)|titrat\w+|lower(?:ed|ing)?|rais(?:ed?|ing)|adjust(?:ed)?)(?![\w-])",
    re.I,
)
_NUMBER = re.compile(
    r"(?<![\w./:#-])(?<!type[ ])(?<!stage[ ])(?<!grade[ ])(?<!class[ ])(?<!group[ ])"
    r"(?!(?:[0-2]\d[0-5]\d|(?:19|20)\d\d)\b)\d+(?:[.,]\d+)?"
    r"(?![\w./:%-]|[ ]*(?:days?|weeks?|months?|years?|hours?|min|cycles?|seconds?))",
    re.I,
)
"""A number that is no date, no time and no length of time."""
ALL_OFF = re.compile(
    r"\b(?:both|all(?:[ ](?:of[ ])?(?:these|which|them|three|four))?|each)\b[^.;\n]{0,30}?"
    r"\b(?:stopp|held|hold|discontinu|d/c|declin|refus|never|not|planned|paus|cease)",
    re.I,
)
"""A state of all drugs of a list, behind the list."""
_HARMLESS = re.compile(
    r"\b(?:without|no|denies|any)\s+(?:any\s+|known\s+|significant\s+)*(?:side\s+effects?"
    r"|adverse\s+\w+"
    r"|reactions?|problems?|issues?|difficult\w+|missed\s+doses?)\b"
    r"|\b(?:do|does|should|must)\s+not\s+(?:stop|skip|miss|discontinue)\b.*"
    r"|\bnever\s+(?:stop|skip)\b.*",
    re.I,
)
"""Words that say that all is well, and warnings against stopping."""
_HOLD_CLAUSE = re.compile(r"\bhold(?:s|ing)?\s+(?:for|if|when)\b.*", re.I)
"""A limit behind the directions (`hold if SBP < 100`): the patient takes the drug."""
_CONDITION_FIRST = re.compile(r"\b(?:if|when|whenever|unless)\b.*", re.I)
_HOLD = re.compile(r"\b(?:hold|stop|discontinue|pause|skip)[ ]*$", re.I)
_REACH = 50
"""The characters behind a name within which a number can belong to the directions."""


def has_doubt(before: str, behind: str) -> bool:
    """Return whether unexplained words before or behind a medication can change its meaning.

    `behind` has blanks in place of the words that the directions explain.
    """
    rest = BEFORE_PATTERN.sub(_blank, before)
    for explained in (CHANGE_BEFORE, TITRATE_BEFORE, SWITCH_BEFORE, SWITCH_TARGET):
        rest = explained.sub(_blank, rest)
    if _HOLD.search(before):
        rest = _CONDITION_FIRST.sub("", rest)
    if _WORDS.search(rest) or _BEFORE.search(rest):
        return True
    behind = _HARMLESS.sub("", _HOLD_CLAUSE.sub("", behind))
    if _HOLD.search(before) and HOLD_LIMIT.match(behind):
        return False
    return bool(
        _WORDS.search(behind) or _BEHIND.search(behind) or _NUMBER.search(behind, 0, _REACH)
    )


def has_doubt_word(remark: str) -> bool:
    """Return whether a remark in a heading can change the meaning of the drugs below."""
    return _WORDS.search(remark) is not None


def is_dosed_again(text: str, end: int, next_start: int) -> bool:
    """Return whether the next statement, without another drug, speaks of taking some amount."""
    m = _DOSED_AGAIN.match(text, end, min(next_start, end + 120))
    if m is None:
        return False
    return bool(DOSE.match(text, m.end(), next_start) or _PART.match(text, m.end(), next_start))


def is_fraction_open(before: str, behind: str) -> bool:
    """Return whether a fraction or a step changes the dose that the text prints.

    `halve the lisinopril 20 mg`, `reduce it by half`, `taper by 10 mg weekly`. medproc computes no
    dose. `before` ends at the name of the drug, and `behind` begins there. A new dose behind `to`
    decides.
    """
    given = _NEW_DOSE.search(behind)
    if given is not None and not _TO_NOTHING.search(behind):
        return False
    if _FRACTION_BEFORE.search(before):
        return True
    if _FRACTION_BEHIND.search(behind):
        return True
    return _CHANGES.search(before) is not None and _BY_STEP.search(behind) is not None


_PART = re.compile(r"(?:half|½|1/2|double|twice|a[ ](?:half|quarter))\b(?![ ]?-)", re.I)
_NEW_DOSE = re.compile(r"(?:\b(?:to|now|equals?)|->|→|=)[ ]+(?:[a-z]+[ ]){0,2}\d", re.I)
_TO_NOTHING = re.compile(r"\bto[ ]+(?:0|zero|off|nothing|none)\b(?![.,]\d)", re.I)
_FRACTION_BEFORE = re.compile(
    r"\b(?:halv(?:e[sd]?|ing)|doubl(?:e[sd]?|ing)|tripl(?:e[sd]?|ing)|quadrupl\w+|cut(?:s|ting)?"
    r"|split(?:s|ting)?|half[ ]of)(?:[ ](?:the|her|his|your|home|current|usual|dose"
    r"|dosage|of))*[ ]*$",
    re.I,
)
_FRACTION_BEHIND = re.compile(
    r"^[^.;\n]{0,60}?\b(?:in[ ]half|by[ ](?:a[ ])?(?:half|third|quarter|\d+[ ]?%|\d+[ ]percent))"
    r"(?!\w)",
    re.I,
)
_CHANGES = re.compile(
    r"\b(?:taper|wean|increas|decreas|reduc|lower|rais|(?:up|down)?-?titrat|drop|advanc|escalat)"
    r"\w*(?:[ ](?:up|down|off|the|her|his|your|home|dose|dosage|of|slowly|gradually))*[ ]*$",
    re.I,
)
_BY_STEP = re.compile(r"^[^.;\n]{0,60}?\bby[ ]+(?:\d|one\b|two\b|three\b|an?[ ]|½)", re.I)


_DOSED_AGAIN = re.compile(
    r"[.;, ]*(?:(?:but|and|the|patient|pt|he|she|they|i|actually|now|only|really|instead|says?"
    r"|states?|reports?|currently|has|have|had|been|is|was|dose|it|just|in[ ]fact"
    r"|confirms?|told|me|us|that)[ ]+){0,7}"
    r"(?:takes?|taking|took|uses?|using|on|dose|it|to|at|is|was)[ ]+"
    r"(?:(?:about|only|just|at|the|a|actually|now|of|up|it)[ ]+){0,3}",
    re.I,
)


def _blank(m: re.Match[str]) -> str:
    return " " * len(m.group())
