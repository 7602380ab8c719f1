"""Verb phrases that take a finding back, end it, or only believe it.

The rows have the form of `cue_grammar` and are tried before it. A blank in a pattern matches one or
more blanks.
"""

from __future__ import annotations

_BE = r"(?:is|was|were|are|be|been|being|has been|have been|had been)"
_NOT = (
    r"(?:(?:is|was|were|are|has|have|had|do|does|did|can|could|would)(?: [a-z]+ly| also| now| still"
    r"| yet)*(?: not| never|n['’]t)|cannot|can['’]t|not|never)"
)
_SEEN = (
    r"(?:thought|felt|believed|considered|deemed|judged|known|shown|reported|suspected|found"
    r"|presumed|assumed|seen|proven|said|expected)"
)
_WHO = r"(?:he|she|they|it|this|that|these|the (?:patient|child|pain|rash|process)|patient|pt)"
_HAS = (
    r"(?:(?:may|might|could|would) )?(?:has|have|had|is having|is|was|are|were|be|been"
    r"|suffers? from"
    r"|developed|represents?|got|caught)"
)
_WRONG = (
    r"(?:wrong|incorrect|erroneous|in error|entered in error|made in error|charted in error"
    r"|a mistake"
    r"|by mistake|withdrawn|retracted|removed|revoked|refuted|false|unfounded|disproven|taken back"
    r"|a misdiagnosis|deleted)"
)
_END = r"(?=[ ]*(?:[.,;:)]|and\b|but\b|since\b|in\b|at\b|after\b|by\b|with\b|on\b|last\b|now\b|$))"

STATEMENTS: tuple[tuple[str, str], ...] = (
    # Taken back.
    (
        "NOT_POST",
        (
            r"\bruled out\b(?! for\b)(?=[ ]*(?:[.,;)\d]|by\b|in\b|on\b|at\b|after\b|with\b|per\b"
            r"|via\b|during\b|last\b|$))"
        ),
    ),
    (
        "NOT_POST",
        (
            r"\bnot (?:seen|identified|found|detected|demonstrated|noted|appreciated|visuali[sz]ed"
            r"|observed|evident|shown|confirmed|present|apparent|suspected|diagnosed|reported"
            r"|established|felt|heard|palpated|elicited|proven|documented)\b"
            r"(?=[ ]*(?:[.,;)]|on\b|by\b|in\b|at\b|during\b|today\b|$))"
        ),
    ),
    (
        "NOT_POST",
        (
            rf"\b{_NOT} (?:(?:be|been|being|also|now|currently|[a-z]+ly) )*{_SEEN} to be"
            r" (?:present|there|active|evident|likely|involved|contributing|contributory"
            r"|significant"
            r"|real|relevant|applicable|at play|(?:the|a|an) (?:likely |primary |main "
            r"|major )?(?:cause"
            r"|case|source|reason|problem|etiology|explanation|diagnosis|culprit|concern|factor"
            r"|issue"
            r"|contributor|possibility))\b"
        ),
    ),
    (
        "NOT_POST",
        (
            r"\b(?:is|was|were|are|seems?|appears?)(?:n['’]t| not| never) (?:to be )?(?:the|a|an)"
            r" (?:likely |primary |main |major )?(?:cause|case|source|reason|problem|etiology"
            r"|explanation"
            r"|diagnosis|culprit|concern|issue|contributor|possibility|consideration)\b"
        ),
    ),
    (
        "NOT_POST",
        (
            rf"(?:[ ]?-[ ]|\b)(?:the )?(?:diagnosis )?(?:{_BE} )+(?:later |subsequently |since "
            rf"|found to be"
            rf" |shown to be |[a-z]+ly )*{_WRONG}\b|\bentered in error\b|\b(?:erroneous"
            rf"|false) entry\b"
        ),
    ),
    (
        "NOT",
        (
            r"\b(?:mis-?diagnosed|mis-?label(?:l)?ed|mis-?classified|mistaken|mistook)(?: (?:as"
            r"|with|for"
            r"|having|to have))*\b|\b(?:incorrectly|erroneously|wrongly|falsely|mistakenly)"
            r" (?:diagnosed|labell?ed|listed|coded|documented|recorded|reported|charted|carried"
            r"|told)"
            r"(?: (?:as|with|for|having|to have|under|(?:he|she|they) (?:has|have|had)))*\b"
        ),
    ),
    (
        "NOT",
        (
            rf"\bden(?:y|ies|ied|ying)(?: that)? {_WHO}(?: (?:has|have|had|is|was))?"
            r"(?: (?:ever|any|had|been|having))*\b"
        ),
    ),
    (
        "NOT_POST",
        (
            r"\b(?:(?:effectively|essentially|completely|definitively|reasonably|largely"
            r"|basically|clinically|conclusively|safely|virtually|practically|subsequently"
            r"|finally|now|since|thus|been|already|later) )+(?:excluded|ruled out)\b(?! (?:for"
            r"|of)\b)"
            r"|\bexcluded\b(?=[ ]*(?:[.,;)]|by\b|with\b|on\b|$))"
        ),
    ),
    ("NEAR_NOT_POST", r"\babsent\b(?=[ ]*(?:[.,;)]|$))|(?<=[a-z])-free\b"),
    (
        "NOT",
        (
            r"(?:\bpertinent )?\bnegatives?(?: (?:include[sd]?|are|were|is))?[ ]?:"
            r"|\bpertinent negatives?"
            r"\b(?: (?:include[sd]?|are|were|is))?|\babsent[ ]?:|(?<=[,;]\s)-[ ](?=[a-z])"
        ),
    ),
    ("AFFIRM", r"\((?:present|positive|yes)\)|\bpresent[ ]?:|[ ]\+(?=[ ]*(?:[,;.]|$))"),
    ("NEAR_NOT_POST", r"(?<=[a-z])[ ]-(?=[ ]*(?:[,;]|\.?$))"),
    ("ADJACENT_NOT", r"\babsent (?=[a-z])"),
    # Tested and positive.
    (
        "CONFIRM_POST",
        (
            rf"(?:,? )?\b(?:and |which |that )?(?:(?:{_BE}|tested|came back|comes back|returned"
            rf"|turned out"
            rf"|resulted"
            r"|turned|confirmed|both|all) )+(?:now |also |both |all |to be |strongly "
            r"|weakly )*positive\b"
            r"(?! (?:for|that)\b)"
        ),
    ),
    # Believed.
    (
        "POSSIBLE",
        (
            r"\b(?:thinks?|believes?|believed|fears?|feared|wonders?|wondered|worr(?:y|ies|ied)"
            r"|concern(?:ed)?"
            rf"|suspects?|suspected|suspicious|guess(?:es)?|convinced|afraid)(?: that| if"
            rf"| whether)? {_WHO}"
            rf"(?: (?:also|now|just|still|again))* {_HAS}\b(?: an?\b)?(?! (?:no|not)\b)"
        ),
    ),
    (
        "POSSIBLE",
        (
            r"\b(?:thought|felt|believed|presumed|considered|suspected|feared|assumed|said"
            r"|rumou?red"
            r"|suggested) (?:(?:initially|originally|first|at first|also) )*to (?:have(?: had)?"
            r"|be(?: an?| the"
            r"| due to| from| related to| secondary to)?|represent|reflect"
            r"|suffer from)\b(?! (?:no|not"
            r"|free|negative|unlikely|without|clear|less|well|stable|safe|fine|normal)\b)"
        ),
    ),
    (
        "POSSIBLE",
        (
            r"\b(?:initially|originally|at first|first) (?:diagnosed|treated|labell?ed|suspected"
            r"|believed"
            r"|managed|worked up|read|interpreted|presumed|misread)(?: (?:as|with|for|to be"
            r"|to have))*\b"
        ),
    ),
    ("POSSIBLE", r"\b(?:borderline|almost|nearly|would-be)\b(?! (?:daily|every|all|complete))"),
    (
        "POSSIBLE_POST",
        (
            r"\b(?:(?:is|was|are|were|very|most|more|quite|also|highly|still) )*(?:likely|probable"
            r"|possible"
            r"|suspected|questionable|presumed|unconfirmed|uncertain|unproven|doubtful(?! [a-z]))"
            r"(?=[ ]*(?:[.,;)]|$|but\b|and\b|than\b))|[ ]?\?(?=[ ]*(?:$|[,;)])|[ ]+(?-i:[A-Z]))"
        ),
    ),
    (
        "RISK",
        (
            r"\b(?:signs?|symptoms?|warning signs?)(?:(?: and|/| or|,) ?(?:signs?"
            r"|symptoms?))*(?: of| for)?"
            r"(?= [^.;:]{1,60}\b(?:reviewed|discussed|explained|taught|given|provided|outlined)\b)"
            r"|\b(?:complications?|side effects?|adverse effects?|dangers?)(?: such as| including"
            r"| like|,"
            r" (?:such as|including|e\.g\.),?| of)?(?= [^.;:]{1,60}\b(?:reviewed|discussed"
            r"|explained)\b)"
            r"|\brisks? (?:include|includes|including|are|were|such as|discussed)\b:?"
        ),
    ),
    (
        "RISK",
        (
            r"\b(?:ask(?:s|ed|ing)?|inquir\w+|questions?|questioned|queried|quer(?:y|ies)) (?:him "
            r"|her |them "
            r"|the patient |patient |pt )?(?:about|regarding|for|on)\b"
        ),
    ),
    (
        "RISK",
        (
            r"\b(?:instruct|advis|told|counsel|educat|remind"
            r"|encourag)\w* (?:[\w/]+ ){0,3}?to (?:report|call"
            r"|return|watch|notify|seek|monitor|look|come back|go)\b(?: (?:back|out|us|the office"
            r"|care|md"
            r"|for|if|with|about|any|immediately|promptly))*"
        ),
    ),
    (
        "POSSIBLE",
        (
            r"\btreat(?:ed|ing|ment)? (?:empirically|presumptively) (?:for|as)\b|\b(?:will|to|would"
            r"|can)"
            r" treat (?:this |it )?as\b|\b(?:empiric(?:al)?|presumptive) (?:treatment|therapy"
            r"|coverage"
            r"|antibiotics?) (?:for|of)\b|\blow threshold (?:to|for)(?: [a-z]+){0,2}? for\b"
            r"|\bcover(?:age|ed|ing)? for\b"
        ),
    ),
    (
        "RISK_POST",
        (
            r"\b(?:should|would|will|must) (?:prompt|trigger|warrant|lead to|be reported"
            r"|result in a call"
            r"|necessitate)\b"
        ),
    ),
    # Over.
    (
        "PAST_POST",
        (
            r"\b(?:as an? (?:young |small |little |premature )?(?:child|kid|teenager|baby|infant"
            r"|toddler)"
            r"|in (?:early )?(?:childhood|infancy|adolescence))\b"
        ),
    ),
    (
        "PAST_POST",
        (
            r"\b(?:(?:has|have|had|is|are|was|were|now|since|all|fully|completely|mostly"
            r"|spontaneously) )*"
            r"(?:gone|subsided|abated|disappeared|went away|gone away|cleared(?: up)?|dissipated"
            r"|outgrown"
            rf"|outgrew|long since over|over){_END}"
        ),
    ),
    (
        "PAST_POST",
        (
            r"\b(?:(?:was|were|been) )?treated (?:last (?:week|month|year|winter|spring|summer"
            r"|fall)"
            r"|in (?:19|20)\d\d|(?:\d+|one|two|three|four|several|a few|many) (?:weeks|months"
            r"|years) ago)\b"
        ),
    ),
    ("PAST", r"\bin (?:full |complete )?remission from\b|\brecovered from\b|\bsurvivor of\b"),
)
"""Kinds with their patterns; the first pattern that matches at a place is taken."""
