"""The words that say whether the patient takes a medication, by the place where they occur."""

from __future__ import annotations

import re
from enum import Enum, auto


class State(Enum):
    """The reason why the patient does not take a medication."""

    STOPPED = auto()
    HELD = auto()
    PAST = auto()
    """Taken in the past, or replaced."""
    ERROR = auto()
    """Entered in error, or of another patient."""
    PLANNED = auto()
    """Planned, considered, conditional, or a limit."""
    NOT_TAKEN = auto()
    """Declined, never started, or avoided."""
    RELATIVE = auto()
    """Taken by a relative."""
    OTHER_PERSON = auto()
    ACTIVE = auto()
    """A verb that says that the patient takes the medication."""


_PERSON = (
    r"(?:wife|husband|spouse|partner|girlfriend|boyfriend|fianc[eé]e?|mother|father|mom|dad"
    r"|parents?"
    r"|brother|sister|siblings?|twin|son|daughter|child|baby|infant|newborn|aunt|uncle|cousin"
    r"|nephew|niece|(?:great-?)?grand(?:mother|father|parents?|ma|pa|son|daughter|child)"
    r"|(?:mother|father|sister|brother|son|daughter)-in-law|step(?:mother|father|son|daughter)"
    r"|room-?mate|flat-?mate|house-?mate|friend|neighbou?r|co-?worker|colleague|donor|caregiver"
    r"|carer|aide|sitter|dog|cat|pet)s?"
)
OTHER_BEFORE = re.compile(
    rf"\b{_PERSON}(?:[ ](?!(?:reports?|states?|says?|he|she|patient|pt|notes?|confirms?|told"
    r"|thinks|gives|gave|that|and|him|her|I)\b)\w+){0,2}?[ ](?:takes|take|is[ ]taking|took|is[ ]on"
    r"|was[ ]on|are[ ]on|uses|is[ ]using|used|has[ ]been[ ](?:on|taking)|was[ ](?:given"
    r"|prescribed|started[ ]on|treated)"
    r"|is[ ]prescribed|receives|received|has[ ]a[ ]prescription|is[ ]treated)\b"
    r"(?![^.;]*\b(?:he|she|patient|pt|I)[ ](?:takes|is|was|uses|has)\b)"
    rf"|\b{_PERSON}(?:'s|’s|s')[ ]+(?:own[ ]|old[ ]|leftover[ ]|medication[ ](?:is|list)[: ]*)?$",
    re.I,
)
OTHER_BEHIND = re.compile(
    rf"\b(?:belong(?:s|ing)?[ ]to|taken[ ]by|prescribed[ ](?:to|for)|for|of)[ ](?:his|her|their"
    rf"|the)"
    rf"(?:[ ]patient's)?[ ]{_PERSON}\b|[(\[]{_PERSON}(?:'s|’s)?[ ]?(?:medication|med|drug)?[)\]]",
    re.I,
)
_MODAL = (
    r"(?:may|might|could|can|would|will|shall|plan(?:s|ned|ning)?(?:[ ](?:to|on|for))?|going[ ]to"
    r"|to|intend(?:s|ed)?[ ]to|likely[ ]to|want(?:s|ed)?[ ]to|able[ ]to)"
)
_BEGIN = (
    r"(?:start(?:ing)?|begin(?:ning)?|initiat(?:e|ing)|add(?:ing)?|try(?:ing)?|resum(?:e|ing)"
    r"|restart(?:ing)?|prescrib(?:e|ing)|giv(?:e|ing)|need(?:ing)?|us(?:e|ing)|switch(?:ing)?"
    r"|chang(?:e|ing)|transition(?:ing)?|convert(?:ing)?|order(?:ing)?|introduc(?:e|ing)"
    r"|require|benefit[ ]from|administer)"
)
_BEFORE: tuple[tuple[State, str], ...] = (
    (
        State.PLANNED,
        (
            rf"(?<!decided )\b(?:{_MODAL}[ ]+(?:be[ ])?(?:then[ ]|also[ ]|likely[ ]"
            rf"|\w+ly[ ])?(?:consider[ ])?{_BEGIN}"
            r"|consider(?:ed|ing|ation[ ]of|ations?)?|discuss(?:ed|ing)?|offer(?:ed|ing)?"
            r"|propos(?:e|ed|ing)"
            r"|candidate[ ]for|eligible[ ]for|possible|possibly|potential(?:ly)?|pending|planned"
            r"|awaiting|thinking[ ]about|option[ ]of|recommend(?:s|ed|ing)?|suggest(?:s|ed|ing)?"
            r"|advise[sd]?(?![ ]against)|requests?|requested|should[ ](?:be[ ])?(?:on"
            r"|take|taking))\b(?:[ ](?:on|of|to|about))?"
            rf"(?:[ ]{_BEGIN}\b)?"
        ),
    ),
    (
        State.NOT_TAKEN,
        (
            r"\b(?:den(?:y|ies|ied|ying)[ ](?:any[ ]|current(?:ly)?[ ]|recent(?:ly)?[ ]|ever[ ]"
            r"|the[ ])*(?:use[ ]of|taking|using|being[ ]on|having[ ]taken)"
            r"|avoid(?:ed|ing)?|never[ ](?:take|took|taken|takes|started|filled|used"
            r"|been[ ]on|tried"
            r"|begun|received|given)|(?:do|did|does|has|had|have|was|is|should|will|would|to)"
            r"(?:[ ]not|n't)[ ](?:yet[ ])?(?:been[ ])?(?:take|taking|taken|use|using|restart|give"
            r"|given"
            r"|start|started|begin|begun|fill|filled|pick[ ]up|want|tak)|no[ ]more"
            r"|not[ ](?:currently[ ]"
            r"|yet[ ]|presently[ ])?(?:taking|on|using|started|given|prescribed)|declin(?:e|es|ed"
            r"|ing)"
            r"|refus(?:e|es|ed|ing|al[ ]of)|contraindicat\w+|defer(?:red|ring)?|(?:decided"
            r"|opted)[ ]against"
            r"|advised[ ]against|non-?adherent[ ](?:with|to)|not[ ]a[ ]candidate[ ]for)\b"
            r"(?:[ ](?:to[ ])?(?:take|start|taking|starting|use|begin|try|trial[ ]of))?"
        ),
    ),
    (
        State.STOPPED,
        (
            r"(?<!was )(?<!were )(?<!been )(?<!is )(?<!are )\b(?:stop(?:ped|ping|s)?"
            r"|discontinu(?:e|ed|es|ing|ation[ ]of)|d/?c'?e?d|d/c|no[ ]longer[ ](?:taking|on"
            r"|takes|uses"
            r"|using|needs|prescribed)|off[ ]of|(?<!day[ ])(?<!weeks[ ])(?<!days[ ])off(?=[ ])"
            r"|quit"
            r"|ceas(?:e|ed)|wean(?:ed|ing)?[ ]off|inactive|withdr[ae]w|gave[ ]up)\b(?![ ]home)"
            r"(?:[ ](?:taking|using))?"
        ),
    ),
    (
        State.HELD,
        (
            r"(?<!was )(?<!were )(?<!been )(?<!is )\b(?:hold(?:ing)?|held|paus(?:e|ed|ing)"
            r"|withh(?:old|eld|olding)|suspend(?:ed|ing)?|on[ ]hold)\b"
        ),
    ),
    (
        State.PAST,
        (
            r"\b(?:(?:previous(?:ly)?|former(?:ly)?|in[ ]the[ ]past|remotely)(?:[ ](?:on|took"
            r"|taking|used"
            r"|using|tried|treated[ ]with|prescribed|taken|trial[ ]of|use[ ]of|therapy[ ]with))?"
            r"|used[ ]to[ ](?:take|be[ ]on|use)|(?:he|she|patient|pt|and|who)?[ ]?(?:was|were"
            r"|had[ ]been)[ ]"
            r"(?:previously[ ]|formerly[ ]|once[ ]|only[ ])?(?:on|taking)"
            r"|fail(?:ed|ure[ ]of|ing)|tried|trial(?:l?ed)|prior[ ](?:use[ ]of|trial[ ]of"
            r"|treatment[ ]with"
            r"|therapy[ ]with|to[ ]that)"
            r"|(?:could|can|did|does|do|unable)(?:[ ]not|n't|not|[ ]to)[ ]tolerate|intoleran(?:t"
            r"|ce)[ ](?:of|to)"
            r"|(?:switch|chang|transition|convert|rotat)(?:e|ed|ing)?[ ](?:her|him"
            r"|the[ ]patient[ ]|over[ ])?from"
            r"|(?:instead|in[ ]place|in[ ]lieu)[ ]of|rather[ ]than|replac(?:e[sd]?|ing)"
            r"|(?:completed|finished)(?:[ ](?:a|his|her"
            r"|the))?(?:[ ]\S+){0,2}?(?:[ ]course)?(?:[ ]of)?"
            r"|s/p|status[ ]post|history[ ]of[ ]taking)\b"
        ),
    ),
    (
        State.ERROR,
        (
            r"\b(?:(?:entered|listed|charted|documented)[ ]in[ ]error"
            r"|erroneous(?:ly[ ](?:listed|entered))?)\b"
        ),
    ),
    (
        State.ACTIVE,
        (
            r"\b(?:start(?:ed|ing|s)?|beg[ai]n|continu(?:e|es|ed|ing)|tak(?:es|e|ing)|initiat(?:e"
            r"|ed)"
            r"|add(?:ed)?|resum(?:e|ed)|restart(?:ed)?|is[ ]on|remains[ ]on|prescrib(?:e|ed)"
            r"|giv(?:e|en)"
            r"|switch(?:ed)?[ ]to|chang(?:e|ed)[ ]to|now[ ](?:on|taking)|currently|received|uses"
            r"|using)\b"
        ),
    ),
)
BEFORE_PATTERN = re.compile("|".join(f"(?P<{s.name}>{p})" for s, p in _BEFORE), re.I)
CONDITION = re.compile(
    r"\b(?:if|unless|in[ ]case|in[ ]the[ ]event|should[ ](?:he|she|the|pain|symptoms|this|patient"
    r"|it|they)"
    r"|once[ ](?!daily|a[ ]|weekly|nightly)\w+|when[ ](?:able|ready|stable))\b"
    r"|\b(?:when|after|once)[ ][^.;,]{2,60},",
    re.I,
)
TOOK = re.compile(r"\b(?:took|used|received|was[ ]taking|had[ ]taken)\b[^.;]{0,40}$", re.I)
UNTIL = re.compile(r"[^.;\n]{0,30}?\buntil\b", re.I)
"""`took … until March`: taken in the past."""
HOLD_LIMIT = re.compile(
    r"[^.;\n]{0,20}?\b(?:if|when|whenever|unless)\b|[ ]*(?:for|with)[ ](?:a[ ])?(?:sbp"
    r"|dbp|map|systolic|hr\b|heart[ ]rate"
    r"|pulse|bp|rr|sedation|k[ ]?[<>]|loose|diarrhea|glucose|bg\b|inr|\S*[ ]?[<>≤])",
    re.I,
)
"""A limit behind a drug to hold (`hold lisinopril if SBP < 100`): the patient takes the drug."""
START = re.compile(r"\b(?:start|begin|initiate|add|resume|restart|give|try)(?:ing)?\b", re.I)
START_LATER = re.compile(
    r"^[^.;\n]{0,60}?\b(?:if(?![ ](?:needed|required))|after[ ](?!meals|food|breakfast|lunch|dinner"
    r"|supper|each)|once[ ](?!daily|a[ ]|weekly|nightly)\w+|when[ ](?!needed|required)"
    r"|pending|following|tomorrow|next[ ](?:week|month|visit)|in[ ](?:\d+|one|two|three"
    r"|a)[ ](?:days?|weeks?|months?)"
    r"|until[ ]after)\b",
    re.I,
)
LIMIT_BEFORE = re.compile(
    r"\b(?:(?:do[ ]not|don't|never|not[ ]to|should[ ]not|must[ ]not)[ ]exceed"
    r"|max(?:imum)?(?:[ ](?:daily|total))?"
    r"(?:[ ](?:dose|amount))?(?:[ ]of)?|limit|(?:no|not|don't)(?:[ ](?:take|use"
    r"|give))?[ ]more[ ]than|less[ ]than)(?:[ ](?:the|your|total|daily))*[ ]*$",
    re.I,
)
TOOK = re.compile(
    r"\b(?:took|received|tried|used|(?:was|were)[ ](?:given|prescribed|treated[ ]with|on)"
    r"|had[ ]been[ ](?:on|taking))[ ]+(?:(?:a|an|the|some|his|her)[ ]+)?(?:\w+[ ]+of[ ]+)?$",
    re.I,
)
LONG_AGO = re.compile(
    r"[^.;\n]{0,60}?\b(?:last[ ](?:month|year|spring|summer|fall|autumn|winter)"
    r"|(?:\d+|an?|one|two|three|four|five|six|several|a[ ]few)[ ](?:weeks?|months?|years?)[ ]ago"
    r"|(?:back[ ])?in[ ](?:(?:January|February|March|April|May|June|July|August|September|October"
    r"|November|December)(?:[ ,]+)?)?(?:19|20)\d\d"
    r"|in[ ](?:January|February|March|April|May|June|July|August|September|October|November"
    r"|December))\b",
    re.I,
)
STOP_CUE = re.compile(r"\b(?:stop|discontinu|d/?c'?e?d\b|switch|replac|instead|rather)", re.I)
"""Words that say something about another drug of the sentence if they give this drug no state."""
CHANGE_BEFORE = re.compile(
    r"\b(?:increas|decreas|reduc|lower|rais|chang|adjust|titrat|uptitrat|downtitrat|advanc|escalat"
    r"|doubl|halv|tripl)"
    r"(?:e|ed|ing|s)?(?:[ ](?:the|her|his|your|home|dose|dosage|of|to))*[ ]*:?[ ]*$",
    re.I,
)
TITRATE_BEFORE = re.compile(
    r"\b(?:up|down)?-?titrat(?:e|ing)(?:[ ](?:the|her|his|your))?[ ]*$", re.I
)
_AUX = (
    r"(?:(?:(?:he|she|patient|pt|it|this|medication|drug|which|that|but|and|now|recently|also|since"
    r"|then|self|was|were|is|are|has|have|had|been|being|to|be|will|the|status|currently|this|visit"
    r"|today|never|prescription|order|already|by|cardiology|pcp|reports?|reported|states?"
    r"|stated|says|said|told"
    r"|temporarily"
    r"|permanently|prescribed|recommended|offered|still|just|i)(?![a-z])[ :-]*)*)"
)
BEHIND: tuple[tuple[State, str], ...] = (
    (
        State.NOT_TAKEN,
        (r"not[ ](?:currently[ ]|yet[ ]|presently[ ]|actually[ ]|been[ ])*"
        r"(?:taking|taken|started|filled|using|given|begun|picked[ ]up|used"
        r"|on[ ]this)|never[ ](?:took|taken|started|filled|used|begun|picked[ ]up|began"
        r"|given"
        r"|received|been[ ]\w+)|(?:took|taken|started|filled|begun|used|given)[ ]never"
        r"|(?:did|does|do|has|have)(?:[ ]not|n't)[ ](?:want[ ]to[ ])?(?:start(?:ed)?|tak(?:e|en)"
        r"|fill(?:ed)?"
        r"|use|been[ ]taking|begin)|declin(?:ed|es)|refus(?:ed|es)|deferred|contraindicated|avoided"
        r"|non-?adherent|not[ ]indicated"),
    ),
    (
        State.ERROR,
        (r"(?:entered|charted|documented|recorded|listed|ordered|added)[ ]"
        r"(?:in[ ]error|by[ ]mistake|erroneously)"
        r"|in[ ]error(?!s)|erroneous(?:[ ]entry)?|error|wrong[ ]patient"),
    ),
    (
        State.PAST,
        (r"(?:poorly|not)[ ]tolerated|tolerated[ ](?:poorly|badly)|replaced"
        r"|switched[ ](?:to|over)|in[ ]the[ ]past|(?:previously|formerly)(?![ ]+\d)|years?[ ]ago"
        r"|from[ ](?:19|20)\d\d[ ]?(?:to|until|-|–)[ ]?(?:19|20)\d\d"
        r"|past[ ]medication|historical"
        r"|until[ ](?:\w+[ ])?(?:\d{1,2}/)?(?:19|20)\d\d|course[ ](?:completed|finished)"
        r"|not[ ]tolerate\w*"),
    ),
    (
        State.STOPPED,
        (r"(?:stop(?:ped)?|discontinued?|d/?c'?e?d|d/c|dc|ceased|withdrawn|cancell?ed"
        r"|inactive|ended|expired"
        r"|completed|finished|no[ ]longer[ ](?:taking|on|takes|uses|using|needed|taken)"
        r"|not[ ](?:being[ ]|been[ ]|to[ ]be[ ])*(?:continued|resumed|restarted|renewed|refilled"
        r"|reordered)"
        r"|tapered[ ]off|weaned[ ]off"
        r"|removed(?:[ ]from)?|off(?=[ ]*(?:[.,;)]|since\b|for\b|now\b|$)))"),
    ),
    (
        State.HELD,
        (r"(?:(?:to[ ]be[ ])?(?:resumed?|restart(?:ed)?)[ ](?:after|when|once|if|on|in)(?![a-z])"
            r"|on[ ]hold|held(?![ ](?:am|pm|x|this|today's|one|\d{3,4}))|holding"
        r"|hold(?![ ](?:for|if|when)[ ]"
        r"(?:sbp|hr|bp|map|systolic|heart|pulse|rr|sedation|k(?!\w)|loose|diarrhea|glucose|bg"
        r"|\S+[ ]?[<>≤]|[<>]))"
        r"|paused|suspended|withheld)"),
    ),
    (
        State.PLANNED,
        (r"(?:planned|pending|proposed|not[ ]yet[ ]started|offered|recommended|suggested|advised"
        r"|discussed|requested|(?:is[ ])?on[ ]order"
        r"|to[ ]be[ ](?:arranged|scheduled|ordered|started|given|infused|administered)"
        r"(?![ ](?:today|now|daily|with|at[ ](?:bed|night|noon|\d)|every))"
        r"|under[ ]consideration|(?:being[ ])?considered"
        r"|start(?:ed|ing)?[ ](?:tomorrow|next|after|in[ ]\d|once)|to[ ](?:start|begin)"
        r"|if[ ]approved"
        r"|awaiting)"),
    ),
)  # fmt: skip
BEHIND_PATTERN = re.compile(
    r"(?:(?P<edge>^(?:[ \n\t]+(?:taper|course|therapy|treatment|dose|dosing|patch"
    r"|tablets?|capsules?"
    r"|infusion|drip|use)(?![a-z]))*[ \n\t]*|[,(\[~:;–—|\n\t]|[ ]-+[ ]|\*+)[ ~*_]*"
    + _AUX
    + r"|\b(?:was|were|is|are|has[ ]been|have[ ]been|had[ ]been|been|patient|pt|but[ ]\w+)[ ]+"
    + _AUX
    + r")(?:"
    + "|".join(f"(?P<{s.name}>{p})" for s, p in BEHIND)
    + r")(?![\w-])",
    re.I,
)
STARTED_BEHIND = re.compile(
    r"^[ ,(]*(?:(?:was|were|is|has[ ]been|have[ ]been|being|been|then|now|to[ ]be)[ ])*"
    r"(?:started|added|begun|initiated|resumed|restarted|continued)\b(?![ ](?:tomorrow|next"
    r"|after))",
    re.I,
)
STOP_LATER = re.compile(
    r"\bthen[ ](?:stop|off|discontinue)\b|\b(?:stop|discontinue|hold)[ ](?:after|in|on|at|when|if"
    r"|\d)",
    re.I,
)
RESUMED = re.compile(
    r"\b(?:now|since|was|were|been|then|and|but|later)[ ](?:been[ ])?(?:resumed|restarted)\b"
    r"|\bnow[ ](?:back[ ]on|taking)\b",
    re.I,
)
SWITCH_BEFORE = re.compile(
    r"\b(?:switch|chang|transition|convert|rotat|replac|swap)(?:e|ed|es|ing|ched|ped)?"
    r"(?:[ ](?:him|her|patient|pt|over|from|the|out|of|current|home))*[ ]*$",
    re.I,
)
SWITCH_TARGET = re.compile(
    r"\b(?:switch|chang|transition|convert|rotat|replac|substitut|swap)(?:e|ed|es|ing|ched|ped)?\b"
    r"(?:[^.;\n]|\.(?=\d)){0,60}?[ ](?:to|with|by)(?:[ ](?:oral|po|iv))?[ ]*$"
    r"|\b(?:switch|chang|transition|convert)(?:e|ed|es|ing)?(?:[ ]over)?[ ]to[ ]*$",
    re.I,
)
SWITCH_SOURCE = re.compile(
    r"\b(?:switch|chang|transition|convert|rotat)(?:e|ed|es|ing|ched)?\b"
    r"(?:[^.;\n]|\.(?=\d)){1,60}[ ]from[ ]*$"
    r"|\bsubstitut(?:e|ed|ing)\b(?:[^.;\n]|\.(?=\d)){1,60}[ ]for[ ]*$",
    re.I,
)
SWITCH_BEHIND = re.compile(
    r"^[^.;\n]{0,40}?(?:\b(?:to|with|for|by|and[ ]start(?:ed|ing)?|in[ ]favor[ ]of)|-+>|→|⇒)"
    r"(?:[ ](?:a|the|oral|po|iv))?[ ]*$",
    re.I,
)
SWITCHED_BEHIND = re.compile(
    r"^[ ,(]*(?:(?:was|were|has[ ]been|is|being|been|now|and|then)[ ])*(?:switched|changed"
    r"|transitioned|converted"
    r"|replaced|rotated|substituted|swapped)[ ](?:over[ ])?(?:to|with|by|for)(?:[ ]\w+)?[ ]*$"
    r"|^[ ]*(?:-+>|→|⇒)[ ]*$",
    re.I,
)
NEXT_STATEMENT = re.compile(
    r"[.; ]*(?:(?:the[ ])?(?:patient|pt|he|she|it|this|medication|drug)[ ])?(?:(?:was|is"
    r"|has[ ]been|since|now)[ ])*"
    r"(?:stopped|discontinued|on[ ]hold|held|paused|not[ ]taking|never[ ](?:took|started|filled)"
    r"|(?:has|have|did|does)(?:[ ]not|n't)[ ](?:yet[ ])?(?:fill|start|pick|tak|beg[iu]n)\w*"
    r"|(?:hasn't|haven't|didn't)[ ](?:yet[ ])?(?:fill|start|pick|tak|beg[iu]n)\w*"
    r"|not[ ](?:being[ ]|been[ ]|to[ ]be[ ])*(?:continued|resumed|restarted|renewed|refilled)"
    r"|declined|refused|no[ ]longer[ ]tak\w*|entered[ ]in[ ]error|did[ ]not[ ](?:start|take)"
    r"|does[ ]not[ ]take"
    r"|status:?[ ]*(?:stopped|discontinued|on[ ]hold|held|inactive|not[ ]taking))",
    re.I,
)
_LIST_WORD = (
    r"(?:(?:home|current|the|these|your|following|all|of|outpatient)[ ])*"
    r"(?:medications?|meds?|medicines?|drugs?|prescriptions?|orders?|therap(?:y|ies)|agents?|list"
    r"|rx)"
)
HEADINGS: tuple[tuple[State, str], ...] = (
    (
        State.STOPPED,
        (r"(?:stop(?:s|ped)?|discontinue[d]?|d/c'?d|d/c|inactive|ceased"
        r"|no[ ]longer[ ](?:taking|takes?|taken|on|using|uses|active|needed|prescribed)"
        r"|stopping|removed|cancell?ed|(?:has[ ]|have[ ])?quit|off)"),
    ),
    (State.HELD, r"(?:held|on[ ]hold|hold(?:ing)?|paused?|suspended|withheld)"),
    (
        State.NOT_TAKEN,
        (r"(?:declined|refused|not[ ](?:currently[ ])?(?:taking|taken|to[ ]be[ ]taken)"
        r"|never[ ](?:started|taken|took|filled)|avoid(?:ed)?|not[ ]started"
        r"|(?:do(?:es)?|did|has|have)(?:[ ]not|n['’]t)[ ](?:been[ ])?"
        r"(?:tak(?:e|en|ing)|start(?:ed)?|fill(?:ed)?))"),
    ),
    (State.ERROR, r"entered[ ]in[ ]error"),
    (
        State.PAST,
        (r"(?:previous(?:ly)?(?:[ ]on)?|past|former(?:ly)?(?:[ ]on)?|was[ ]on|used[ ]to[ ]take"
        r"|prior|historical|old|failed|completed|tried|expired|replaced)"),
    ),
    (
        State.PLANNED,
        (r"(?:planned|proposed|future|under[ ]consideration|considered|pending"
        r"|to[ ](?:be[ ])?(?:start(?:ed)?|consider(?:ed)?))"),
    ),
)  # fmt: skip
HEADING_PATTERN = re.compile(
    r"^(?:[A-Za-z]+[ ]|[-–—:][ ]){0,6}?(?:"
    + "|".join(f"(?P<{s.name}>{p})" for s, p in HEADINGS)
    + r")(?![\w])(?P<rest>.*)$",
    re.I,
)
IS_LIST = re.compile(rf"\b{_LIST_WORD}\b", re.I)
PLAIN_HEADING = re.compile(
    rf"^(?:[A-Za-z/-]+[ ]){{0,4}}{_LIST_WORD}(?:[ ][A-Za-z]+){{0,4}}[ ]*:?$"
    rf"|^(?:(?:continue|start|keep)(?:[ ]taking)?"
    rf"|take|new|changed|active|current)[ ]*:$",
    re.I,
)
CONTINUED_HEADING = re.compile(
    r"(?:continued?|start(?:ed)?|keep|resumed?|restart(?:ed)?|new|changed|active|current|unchanged)"
    r"(?:[ ]taking)?(?:[ ](?:at|on|upon|after)[ ](?:discharge|admission|home|transfer))?[ ]*:?",
    re.I,
)
"""A line that begins a list of drugs that the patient takes, with or without a colon."""
ADMINISTRATION = re.compile(r"\bMAR\b|administ|medications?[ ]given", re.I)
ADMISSION = re.compile(r"prior[ ]to|past[ ]medical|previous[ ]visit", re.I)
TAKES = re.compile(
    r"\b(?:on|tak(?:es?|en|ing)|took|receiv\w+|given|gave|start(?:s|ed|ing)?|began|begun|prescrib\w+"
    r"|continu\w+|stop(?:s|ped|ping)?|us(?:es?|ed|ing)|tried|treat\w*|therapy|switch\w+|resum\w+"
    r"|restart\w*|hold(?:s|ing)?|held|administer\w+|add(?:s|ed|ing)?|doses?|courses?)\b",
    re.I,
)
"""A word before a drug that a patient takes, in a text where a laboratory may test the drug."""
