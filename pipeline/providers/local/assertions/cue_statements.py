"""Verb phrases that take a finding back, end it, or only believe it.

The rows have the form of `cue_grammar` and are tried before it. A blank in a pattern matches one or
more blanks.
"""

from __future__ import annotations

from pipeline.providers.local.assertions.statement_words import (
    AGAIN,
    AGAIN_KINDS,
    BE,
    END,
    EPISODE,
    HAS,
    LINK,
    LONG_AGO,
    NOT,
    ON,
    PASSIVE,
    PROOF,
    REMOVED,
    SEEN,
    TESTS,
    TO_FINDING,
    WHO,
    WRONG,
)

STATEMENTS: tuple[tuple[str, str], ...] = (
    # What does not come back was there.
    (
        "PAST_POST",
        (
            rf"(?:[,;(:–—-] ?|\b)(?:(?:and|but|with|now|so far|currently) )*\b(?:no|without)"
            rf" {AGAIN_KINDS}(?:recurrences?|relapses?)\b"
            r"(?! (?:of|in|risk|rate|score)\b)|\bNED\b"
            r"|\b(?:has|have|had|did|does) (?:not|never) (?:since )?(?:recur(?:red)?|relapsed?"
            r"|return(?:ed)?|come back)\b"
        ),
    ),
    (
        "PAST",
        (
            r"\b(?:no|without|denies|denied|negative for|free (?:of|from)|never had|not had)"
            rf" {AGAIN_KINDS}{AGAIN}(?: (?:of|in)(?: (?:the|his|her|their))?)\b"
            rf"|\b(?:no|without) {AGAIN_KINDS}"
            rf"(?=(?:(?!{LINK} )[a-z][a-z-]* ){{1,4}}(?:recurrences?|relapses?)\b)"
        ),
    ),
    (
        "NOT_POST",
        (
            r"(?:\b(?:but|however|although|though),? (?:this|that|it|which|the diagnosis)\b"
            rf"(?: (?:{BE}|has|had|later|since|subsequently|then|ultimately|eventually|finally"
            r"|now|also|found to be|shown to be))*"
            r"|\b(?:since|later|subsequently|then|ultimately|eventually|now|finally)"
            rf"(?: (?:been|{BE}|found to be))*) (?:refuted|disproven|disproved|ruled out|excluded"
            r"|retracted|rescinded|overturned|incorrect|wrong)\b(?! (?:for|of)\b)"
        ),
    ),
    (
        "PAST_POST",
        r"(?:[:(–—-] ?|\b)(?:positive |documented )?(?:(?:history|hx) of|had) (?:the )?disease\b",
    ),
    # The tasks and the refusals that a verb in between would hide.
    (
        "NEUTRAL",
        (
            r"\b(?:do|does|did|will|would|can|could)(?: not|n['’]t) (?:stop|go away|let up|ease"
            r"|settle|subside)\b"
        ),
    ),
    (
        "POSSIBLE_POST",
        (
            r"\b(?:still )?(?:has|have|had|is|are|was|were|needs?|needed|ought|remains?)"
            r"(?: (?:still|also|first|now|yet))* to be (?:excluded|ruled out)\b"
        ),
    ),
    (
        "PAST",
        (
            r"\b(?:as an? (?:(?:young|small|little) )?(?:child|kid|boy|girl|teenager|baby|infant"
            r"|toddler|student)|in (?:early |late )?(?:childhood|infancy|adolescence)"
            r"|in (?:his|her|their) (?:youth|childhood|teens|twenties|thirties)),?"
            r" (?:he|she|they|the patient)(?: (?:also|once|often|twice))* (?:had|suffered(?: from)?"
            r"|developed|underwent|(?:was|were) (?:treated for|admitted (?:for|with)))\b(?! no\b)"
        ),
    ),
    (
        "PAST",
        (
            r"\b(?:that|which) (?:had |once )?(?:gave|given|brought) (?:him|her|them|the patient)\b"
            r"|\b(?:tablet|pill|capsule|medicine|medication|drug|statin|injection)s? (?:that|which)"
            r" (?:had |once )?caused\b"
        ),
    ),
    (
        "HISTORY",
        (
            r"\b(?:last|most recent) (?:known |documented |reported )?(?!(?:visit|seen|note|exam"
            r"|check|checked|appointment|admission|dose|menstrual|flown|hospital|time|had|was)\b)"
            r"(?=(?:[a-z-]+ ){1,3}(?:\(|in |on |was in |was )?(?:\d{1,2}/)?(?:19|20)\d\d\b)"
        ),
    ),
    # Two negations leave the finding open.
    (
        "UNCLEAR",
        (
            r"\b(?:den(?:y|ies|ied|ying) (?:neither|no|not|having no|never|nothing)"
            r"|(?:never|not|n['’]t|cannot|nor|neither) (?:[a-z]+ly )?den(?:y|ies|ied|ying|iable)"
            r"|(?:neither|does not|did not) (?:[a-z]+ )?(?:confirm|admit|endorse|den)\w* (?:to )?"
            r"(?:n?or) (?:[a-z]+ )?(?:confirm|admit|endorse|den)\w*(?: to)?"
            r"|not (?:entirely |completely |fully )?(?:negative for|free (?:of|from)|devoid of"
            r"|absent of))\b(?: (?:any|having|either))*"
        ),
    ),
    (
        "NEUTRAL",
        r"\bno (?:[a-z]+ ){0,2}?(?:response|benefit|success)\b(?: (?:to|from|with|on)\b)?",
    ),
    # A negation apart from its finding.
    (
        "NOT",
        (
            rf"\b(?:no|without|nothing|not a single|not any|never any|little|zero)"
            rf" (?:[a-z]+ ){{0,3}}?{PROOF}(?: (?:{PASSIVE}|{ON})){{1,6}}? {TO_FINDING}\b"
            r"(?: (?:an?|any)\b)?"
            rf"|\bnothing(?: (?:{PASSIVE}|{ON})){{1,6}}? {TO_FINDING}\b(?: (?:an?|any)\b)?"
            rf"|\bat no (?:time|point|stage) (?:[a-z]+ ){{0,6}}?(?:{PROOF} (?:of|for)|have|had"
            r"|has|show(?:n|ed)?|develop(?:ed)?|report(?:ed)?|experienced?)\b(?: (?:an?|any)\b)?"
            rf"|\b(?:none of (?:the|her|his|these|those) (?:[a-z]+ ){{0,3}}?"
            rf"|(?:no|neither) (?:[a-z]+ ){{0,2}}?){TESTS} (?:has |have |had |ever )*"
            r"(?:show(?:s|ed|n)?"
            r"|demonstrate[sd]?|reveal(?:s|ed)?|suggest(?:s|ed)?|identif(?:y|ies|ied)|confirm(?:s|ed)?"
            r"|indicate[sd]?|support(?:s|ed)?|detect(?:s|ed)?|found)\b(?: (?:an?|any)\b)?"
        ),
    ),
    (
        "NOT_POST",
        (
            rf"\b(?:{BE} )?no longer (?:(?:an?|the|felt to be|considered|thought to be|in) )*"
            r"(?:(?:active|real|serious|likely|major|current) )*"
            r"(?:concern|consideration|possibility|question|suspected|suspicion|entertained"
            r"|likely|thought|favou?red|differential|supported|pursued)\b"
        ),
    ),
    (
        "PAST_POST",
        (
            rf"\b(?:{BE} )?no longer (?:(?:an?|the) )*(?:(?:active|real|serious|major|current) )*"
            r"(?:issue|problem|present|active|bothersome|troublesome|symptomatic|evident"
            r"|occurring|happening|a complaint|complaint)\b"
        ),
    ),
    (
        "PAST",
        (
            rf"\b(?:last|most recent|final|latest)(?= (?:known |documented |reported )?"
            rf"(?:[a-z-]+ ){{1,4}}?(?:was|were|occurred|happened|had been|came)(?: back)?"
            rf" {LONG_AGO})"
        ),
    ),
    (
        "ONSET_POST",
        (
            rf"\b(?:last|most recent|final|latest) (?:known |documented |reported )?{EPISODE}"
            rf" (?:(?:was|were|occurred|happened) )?(?:{LONG_AGO}|(?:19|20)\d\d)\b"
        ),
    ),
    # Not done.
    (
        "NOT_POST",
        (
            r"\b(?:(?:was|were|been|has|have) )*(?:offered|recommended|advised|discussed|ordered"
            r"|scheduled|suggested|planned|attempted)(?:,| [a-z]+ay)? ?(?:but |and |however,? )?"
            r"(?:the )?(?:patient |pt |he |she |they )?(?:has |was |later |then )*"
            r"(?:refused|declined|cancell?ed|deferred|not done"
            r"|never (?:done|performed|completed))\b"
        ),
    ),
    (
        "PLANNED_POST",
        (
            rf"(?:[ ]?[:(–-][ ]*|\b)(?:(?:{BE}|had to be|be|has|have|had|then|later) )*"
            r"(?:postponed|rescheduled|delayed|put off)\b"
        ),
    ),
    (
        "REFUSED_POST",
        (
            rf"(?:[ ]?[:(–-][ ]*|\b)(?:(?:{BE}|had to be|has|have|had|then|later|the|patient|pt|he"
            r"|she|again) )*(?:refused|declined|cancell?ed|deferred|aborted|waived"
            r"|(?:not|never) (?:been )?(?:done|performed|obtained|completed)"
            r"|(?:did|does)(?: not|n['’]t) want(?: (?:it|this))?)\b"
            r"(?=[ ]*(?:[.,;)]|by\b|today\b|due\b|because\b|per\b|at\b|on\b|secondary\b|for\b"
            r"|until\b|in\b|twice\b|again\b|as\b|since\b|$))"
        ),
    ),
    (
        "POSSIBLE_POST",
        (
            r"\b(?:is|are|remains?|remained|was|stays?|still)(?: (?:still|also|high|low|on|in"
            r"|part of|within|under))* (?:the |our |my )?(?:differential|consideration|ddx)\b"
        ),
    ),
    (
        "POSSIBLE",
        (
            r"\b(?:treat(?:ed|ing)?|managed?|handled?|regard(?:ed)?|consider(?:ed)?)(?: (?:this"
            r"|it|him|her|the patient|patient))? as(?: an?)?\b(?=[^.;]{1,60}\buntil\b)"
        ),
    ),
    (
        "PAST",
        (
            r"\b(?:previously|formerly|once|in the past) (?:had|suffered(?: from)?|developed"
            r"|experienced)\b"
        ),
    ),
    (
        "RISK",
        (
            r"\b(?:counsel(?:l?ed|ling|ing)?|educat(?:ed|ing|ion)|taught|teaching|informed|advised"
            r"|talked|spoke|discussion|handout|leaflet|information|literature)"
            r"(?: (?:him|her|them|the patient|patient|pt|family))?"
            r" (?:on|about|regarding|of|concerning)\b(?: the)?"
            r"(?: (?:signs?|symptoms?|warning signs?|risks?|dangers?|prevention|treatment"
            r"|management|course|causes?|nature)(?: (?:and|or) [a-z]+)?(?: of)?)?"
        ),
    ),
    ("RISK", r"\b(?:thresholds?|cut-?offs?) (?:for|to)\b"),
    ("UNCLEAR", r"\bit (?:is|was) not (?:the case|true) that\b"),
    (
        "NOT",
        (
            rf"\b(?:{TESTS}|evaluation|investigations?|assessment|serology) (?:has |have |had )?"
            r"(?:[a-z]+ly )?(?:excluded|ruled out|disproved|refuted)\b(?: an?\b)?"
            r"|\b(?:never|not|n['’]t) (?:been )?(?:underwent|undergo(?:ne)?)\b(?: (?:an?|any)\b)?"
        ),
    ),
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
            rf"\b{NOT} (?:(?:be|been|being|also|now|currently|[a-z]+ly) )*{SEEN} to be"
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
    ("NEUTRAL", rf"\b{REMOVED}"),
    (
        "NOT_POST",
        (
            rf"(?:[ ]?-[ ]|\b)(?:the )?(?:diagnosis )?(?:{BE} )+(?:later |subsequently |since "
            rf"|found to be"
            rf" |shown to be |[a-z]+ly )*{WRONG}\b|\bentered in error\b|\b(?:erroneous"
            rf"|false) entry\b|[ ]?[:-]?[ ]?\bdiagnosis (?:{BE} )*(?:removed|{WRONG})\b"
            rf"|\b(?:allergy|intolerance|label|entry|flag) (?:{BE} )*removed\b"
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
            rf"\bden(?:y|ies|ied|ying)(?: that)? {WHO}(?: (?:has|have|had|is|was))?"
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
    ("NEAR_NOT_POST", r"(?<=[a-z)])[ ]+never(?=[ ]*(?:[,;|]|$))"),
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
            rf"(?:,? )?\b(?:and |which |that )?(?:(?:{BE}|tested|came back|comes back|returned"
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
            rf"| whether)? {WHO}"
            rf"(?: (?:also|now|just|still|again))* {HAS}\b(?: an?\b)?(?! (?:no|not)\b)"
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
            r"(?=[ ]*(?:[.,;)]|$|but\b|and\b|than\b))|[ ]?\?(?=[ ]*(?:$|[,;)]))"
            r"|(?<=[\w)])\?(?=[ ]+(?-i:[A-Z]))"
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
            rf"|outgrew|long since over|over){END}"
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
    ("PAST", r"\bremote (?:past |medical |surgical )*(?:history|hx) of\b"),
    ("PAST", r"\bin (?:full |complete )?remission from\b|\brecovered from\b|\bsurvivor of\b"),
)
"""Kinds with their patterns; the first pattern that matches at a place is taken."""
