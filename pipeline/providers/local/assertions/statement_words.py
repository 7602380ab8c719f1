"""Groups of words that several statements of `cue_statements` share.

A blank in a pattern matches one or more blanks.
"""

from __future__ import annotations

BE = r"(?:is|was|were|are|be|been|being|has been|have been|had been)"
NOT = (
    r"(?:(?:is|was|were|are|has|have|had|do|does|did|can|could|would)(?: [a-z]+ly| also| now| still"
    r"| yet)*(?: not| never|n['’]t)|cannot|can['’]t|not|never)"
)
SEEN = (
    r"(?:thought|felt|believed|considered|deemed|judged|known|shown|reported|suspected|found"
    r"|presumed|assumed|seen|proven|said|expected)"
)
WHO = r"(?:he|she|they|it|this|that|these|the (?:patient|child|pain|rash|process)|patient|pt)"
HAS = (
    r"(?:(?:may|might|could|would) )?(?:has|have|had|is having|is|was|are|were|be|been"
    r"|suffers? from"
    r"|developed|represents?|got|caught)"
)
WRONG = (
    r"(?:wrong|incorrect|erroneous|in error|entered in error|made in error|charted in error"
    r"|a mistake"
    r"|by mistake|withdrawn|retracted|revoked|refuted|false|unfounded|disproven|taken back"
    r"|a misdiagnosis|deleted"
    r"|removed from (?:the |his |her |their )?(?:problem|diagnos|list|chart|record|history)\w*)"
)
REMOVED = (
    rf"{BE} (?:[a-z]+ly removed|removed (?:whole|complete|entire|in toto|en bloc|piecemeal|by|with"
    r"|using|at|during|on|via|through|endoscopic|surgical|without|and (?:sent|submitted|retrieved)"
    r"|under|in|today|yesterday|from (?!(?:the |his |her |their )?"
    r"(?:problem|diagnos|list|chart|record|history))))"
)
"""Words that say that a surgeon removed the finding, not that a clerk removed the diagnosis."""
END = r"(?=[ ]*(?:[.,;:)]|and\b|but\b|since\b|in\b|at\b|after\b|by\b|with\b|on\b|last\b|now\b|$))"

PROOF = (
    r"(?:evidence|signs?|symptoms?|indications?|suggestion|suspicion|findings?|stigmata|features?"
    r"|documentation|proof|traces?|hints?|focus|foci|cause|reason|records?|mention)"
)
ON = (
    r"(?:today|now|here|currently|either|again|ever|also|(?:on|by|in|at|during|with|from|upon)"
    r"(?: (?:the|this|any|her|his|repeat|initial|physical|chest|plain|bedside))*"
    r" (?:ct|mri|imaging|exam|examination|x-?rays?|films?|ultrasound|us|echo|scans?|study|studies"
    r"|time|point|visit|auscultation|palpation|inspection|testing|labs?|work-?up|biopsy|egd"
    r"|colonoscopy|evaluation|review|stay|admission))"
)
PASSIVE = (
    r"(?:is|was|were|are|be|been|being|has|have|had|could|can|would|will|there|[a-z]+ly|found"
    r"|noted|seen|identified|detected|observed|reported|appreciated|documented|elicited|present"
    r"|apparent|evident|demonstrated|discovered|visuali[sz]ed|shown|raised|uncovered|available|recorded)"
)
TO_FINDING = (
    r"(?:of|for|to (?:suggest|indicate|support|show)|suggesting|indicating|suggestive of"
    r"|indicative of|consistent with|concerning for|supporting"
    r"|(?:that|which) (?:would |could |might )?(?:suggest|indicate|support|show)(?:s|ed)?)"
)
TESTS = (
    r"(?:tests?|imaging|scans?|study|studies|ct|mri|x-?rays?|exams?|examination|work-?up|labs?"
    r"|cultures?|biops(?:y|ies)|findings?|films?|images?|views?|slides?|sections?|specimens?"
    r"|samples?|tracings?|ecgs?|ekgs?|reports?|records?)"
)
LONG_AGO = (
    r"(?:in (?:[a-z]+ )?(?:19|20)\d\d|(?:\d+|two|three|four|five|six|seven|eight|nine|ten|many"
    r"|several) years? ago|years ago|decades ago)"
)
AGAIN = r"(?:recurrences?|relapses?|re-?occurrences?|return)"
AGAIN_KINDS = (
    rf"(?:(?:any|further|known|local|regional|distant|clinical|definite|obvious|biochemical"
    rf"|radiographic|radiologic|systemic|nodal|symptomatic|significant|interval|new|early|late"
    rf"|{PROOF}|of|for|or) )*?"
)
LINK = r"(?:of|from|in|with|for|to|and|or|but|the|an?|any|no|not|history|hx|risk)"
EPISODE = r"(?:episodes?|attacks?|flares?(?:[- ]up)?|bouts?|occurrences?|events?|one|exacerbation)"
