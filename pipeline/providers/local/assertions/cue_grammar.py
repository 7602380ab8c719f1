"""A grammar of verb forms that negate, exclude or doubt a finding.

A form combines an auxiliary (`has been`, `wasn't`, `could not be`), adverbs and a verb of a class:
find, exclude, link. So a form that no list names is read too. A blank in a pattern matches one or
more blanks.
"""

from __future__ import annotations

from pipeline.providers.local.assertions.cue_statements import STATEMENTS
from pipeline.providers.local.assertions.lookalikes import LOOKALIKES

_ADVERB = (
    r"(?:also|again|now|still|all|both|yet|since|once|either|ever|thus|therefore|so far|to date"
    r"|felt|otherwise|not only|(?!(?:family|only|likely|unlikely|early)\b)[a-z]+ly)"
)
_LINK = (
    r"(?:is|was|were|are|am|be|been|being|remains?|remained|became|comes? back|came back"
    r"|returned|return|returns|tests?|tested|testing|screens?|screened|swabbed|turned out|turns out"
    r"|read|reads|resulted|appears?|appeared|looks?|looked|proved|proves)"
)
_LEAD = (
    r"(?:(?:has|have|had|having|will|would|to|can|could|should|may|must|did|does|do)"
    rf"(?: {_ADVERB})* )?"
)
_LINKED = rf"{_LEAD}{_LINK}(?: (?:{_ADVERB}|been|to be))*"
_BE = r"(?:is|was|were|are|am|be|been|being|remains?|remained)"
_AUX = (
    r"(?:is|was|were|are|has|have|had|can|could|will|would|does|do|did|should|may|might|must"
    r"|remains?"
    r"|remained)"
)
_NOT_AUX = (
    rf"(?:{_AUX}(?: {_ADVERB})* (?:not|never)|{_AUX}n['’]t|cannot|can['’]t|won['’]t|never|not)"
)
"""An auxiliary with its negation, or the bare negation."""

_SEEN = (
    r"(?:found|noted|seen|thought|felt|believed|considered|deemed|judged|known|shown|reported"
    r"|suspected|determined|said|documented|prove[nd]|confirmed|presumed|assumed|identified"
    r"|demonstrated|observed|established|diagnosed|detected|visuali[sz]ed|appreciated|described"
    r"|recognized|labell?ed|elicited|revealed|recorded|discovered|encountered|evident|apparent"
    r"|present|palpable|audible|likely|probable|palpated|heard|supported|substantiated|raised"
    r"|favou?red|entertained|a concern|an issue|a consideration|a factor)"
)
_HAVING = (
    r"(?:to have(?: had)?|to be(?: suffering from| due to| having| related to| caused by"
    r"| consistent with| secondary to)?|to (?:harbor|carry|suffer from|show|represent"
    r"|meet criteria for"
    r"|be positive for|develop|demonstrate|reflect|indicate)|as having|as|with|to suggest|having)"
)
_EXCLUDED = (
    r"(?:excluded|ruled out|ruled-out|disprove[nd]|refuted|discounted|dismissed|eliminated"
    r"|negated)"
)
_EXCLUDE = r"(?:exclude|rule out|rule-out|disprove|refute|eliminate|discount|dismiss)"
_EXCLUDES = (
    r"(?:excludes|excluding|rules out|disproves|disproved|refutes|refuted|argues? against"
    r"|arguing against|argued against|speaks? against|weighs? against|militates? against"
    r"|goes against|ruled against|eliminates)"
)
_NEGATIVE = r"(?:negative|neg|unremarkable|non-?reactive|non-?diagnostic|clear|free|devoid)"
_DEGREE = (
    r"(?:(?:very|highly|quite|extremely|most|rather|felt|thought|considered|deemed|judged|to be"
    r"|much|fairly|clinically|felt to be|thought to be|considered to be) )*"
)
_NOT_BE = rf"(?:{_BE}(?: {_ADVERB})* (?:not|never)|{_BE}n['’]t)"
_NOT_DO = (
    rf"(?:(?:has|have|had|can|could|will|would|does|do|did)(?:(?: {_ADVERB})* (?:not|never)|n['’]t)"
    r"|cannot|can['’]t|won['’]t|never|not)"
)
_QUALITY = (
    r"(?:having|consistent with|compatible with|indicative of|suggestive of|diagnostic of"
    r"|concerning for|suspicious for|worrisome for|due to|related to|caused by|secondary to"
    r"|positive for|remarkable for|significant for|notable for|evidence of|any|in)"
)
_HAVE = (
    r"(?:have(?: had)?|had|experienced?|report|reported|note|noted|notice|noticed|endorse|endorsed"
    r"|complain(?:ed)? of|show|shown|showed|reveal|revealed|demonstrate|demonstrated|exhibit"
    r"|exhibited|appear to (?:have|be)|seem to (?:have|be)|suggest|suggested|identify|identified"
    r"|see"
    r"|seen|appreciate|find|found|display|develop|developed|suffer(?:ed)?(?: from)?|indicate"
    r"|indicated|detect|detected|visualize|visualized|carry(?: an? (?:\w+ )?diagnosis of)?"
    r"|meet(?: \w+)? criteria for|support|confirm|look like|represent|reflect|describe"
    r"|sustain(?:ed)?)"
)

_PROOF = (
    r"(?:evidence|signs?|symptoms?|s/s|sx|indications?|suggestion|complaints?|suspicion|concerns?"
    r"|findings?|diagnos[ie]s|stigmata|features?|manifestations?|documentation|records?|mention"
    r"|proof|question|features?|reason to suspect|cause for|possibility|hint|trace|focus|foci"
    r"|presence|occurrence|recurrence|episodes?|cases?)"
)

GRAMMAR: tuple[tuple[str, str], ...] = (
    # Doubt: exclusion that did not happen, or that is a task.
    (
        "NEUTRAL",
        (
            r"\bnegative (?:pressure|inspiratory|feedback|predictive|margins?|base|balance)\b"
            r"|\b(?:does|did|do|can|could)(?: not|n['’]t) (?:recall|remember|know|recollect)\b"
            r"|\b(?:has|have|had) not (?:yet )?been seen by (?!ct|mri|ultra|x-?ray|imag|echo)"
        ),
    ),
    ("NEUTRAL", r"\bnot (?:been )?(?:tested|screened|evaluated|assessed|checked) (?=for)"),
    (
        "NEUTRAL",
        (
            r"\b(?:history|hx) (?:(?:is|was|were) )?(?:obtained|provided|given|taken|limited|per"
            r"|from"
            r"|by)\b"
        ),
    ),
    ("BETWEEN", r"\b(?:vs\.?|versus)(?=[ ])"),
    (
        "POSSIBLE_POST",
        rf"\b{_NOT_AUX} (?:(?:{_ADVERB}|be|been|being) )*{_EXCLUDED}(?! (?:for|of)\b)",
    ),
    (
        "POSSIBLE",
        (
            rf"\b{_NOT_AUX} (?:{_ADVERB} )*(?:be able to )?{_EXCLUDE}\b"
            rf"|\b(?:unable|inability|insufficient|fail(?:s|ed)?|difficult|hard|not able"
            rf"|not possible"
            rf"|inadequate) to (?:{_ADVERB} )*{_EXCLUDE}\b"
        ),
    ),
    (
        "POSSIBLE_POST",
        (
            r"\b(?:unable|difficult|hard|not possible|impossible) to (?:[a-z]+ly )?(?:exclude"
            r"|rule out)\b"
        ),
    ),
    (
        "POSSIBLE",
        (
            rf"\b(?:to|must|should|will|would|please|need|needs|want|wish|in order to|helps?|let us"
            rf"|attempt(?:ing)? to) (?:{_ADVERB} )*{_EXCLUDE}\b"
        ),
    ),
    (
        "CONDITION",
        (
            r"\b(?:if|unless|in case|in the event (?:of|that)|provided that)\b"
            r"(?! (?:not|so|needed|possible|necessary|able|any|present|desired|tolerated"
            r"|indicated))"
            r"|\bshould(?= (?:[\w/-]+ ){1,4}?(?:develop|occur|recur|worsen|persist|arise|appear"
            r"|return"
            r"|happen)\b)"
            r"|(?:^|(?<=[.;:]\s))should (?:he|she|they|the patient|you|it|there|this|these|any)\b"
        ),
    ),
    (
        "DOUBT",
        (
            r"\b(?:question(?:s|ed|ing)?|wonder(?:s|ed|ing)?|ask(?:s|ed)?|unclear|unsure|uncertain"
            r"|unknown|not (?:clear|sure|certain|known)|undetermined) (?:about )?(?:whether|if)\b"
            r"|\bwhether\b"
            r"|\b(?:(?:is|was|it['’]s|seems|appears) (?:\w+ )?)?(?:likely|possible|probable"
            r"|conceivable|plausible|possibility|probability"
            r"|concern(?:ed)?|suspect(?:s|ed|ing)?|suspicion|suspicious|worr(?:y|ied|ies)"
            r"|(?:may|might|could) be) that\b"
            r"|\b(?:may|might|could) (?:[a-z]+ly )?have (?:had|been|developed|suffered|experienced"
            r"|sustained|contracted|undergone|caused|got(?:ten)?)\b"
        ),
    ),
    # Negation that reaches forward.
    (
        "NOT",
        (
            rf"\b{_LINKED} (?:{_DEGREE})?{_NEGATIVE} (?:for|of|from)\b(?: any\b)?"
            rf"|\b{_NEGATIVE} (?:for|of|from)\b(?: any\b)?"
        ),
    ),
    (
        "NOT",
        rf"\b{_NOT_AUX} (?:(?:{_ADVERB}|be|been|being) )*{_SEEN} {_HAVING}\b(?: an?y?\b)?",
    ),
    (
        "NOT",
        (
            rf"\b(?:{_LINKED} )?{_SEEN} (?:not to|to not|never to) (?:have|be|show|carry"
            rf"|suffer from"
            r"|represent|meet criteria for)\b(?: any\b)?"
            rf"|\b(?:{_LINKED} )?{_SEEN} to (?:be (?:free|clear|devoid) of|be negative for|have no"
            rf"|lack"
            r"|be without)\b"
        ),
    ),
    (
        "NOT",
        (
            rf"\b(?:{_NOT_BE} (?:{_ADVERB} )*(?:been )?{_QUALITY}"
            rf"|{_NOT_DO} (?:{_ADVERB} )*(?:{_HAVE}"
            rf"|{_QUALITY}))\b(?: any\b)?"
        ),
    ),
    (
        "NOT",
        (
            rf"\b(?:no|without|w/o|little|zero|lack of|lacks|lacking|absence of|nor|nothing) "
            r"(?:(?:any|clear|definite|obvious|significant|clinical|radiographic|radiological"
            r"|further"
            r"|acute|new|prior|known|current|convincing|compelling|sonographic|laboratory"
            r"|objective|ct"
            r"|mri|imaging|evident|formal|documented|strong|real|overt|gross|focal|residual"
            r"|active) )*"
            rf"(?:{_PROOF}(?:,? (?:and|or|/) {_PROOF})?(?: (?:of|for|to suggest|suggesting"
            rf"|suggestive of"
            r"|to support|consistent with|that suggests?|indicating))|to suggest|to indicate)\b"
            r"(?: (?:an?|any|having)\b)?"
        ),
    ),
    (
        "NOT",
        (
            rf"\b(?:{_LINKED} )?{_DEGREE}(?:unlikely|improbable|doubtful) (?:to (?:have|be"
            rf"|represent"
            r"|reflect|develop|indicate)|that (?:\w+ ){0,3}?(?:has|have|had|is|was|represents?)"
            r"|for)\b"
            r"|\b(?:doubt|doubts|doubted|low suspicion for|low probability (?:of|for)"
            r"|low likelihood of"
            r"|low concern for|do not suspect|does not suspect|did not suspect|not suspicious for"
            r"|not concerned (?:for|about))\b"
        ),
    ),
    ("NOT", rf"\b{_EXCLUDES}\b"),
    ("NOT", rf"\b(?:has|have|had|was|were|is) (?:{_ADVERB} )*(?:ruled out|excluded) for\b"),
    (
        "NOT",
        (
            r"\b(?:fail(?:s|ed|ing)?|unable) to (?:show|reveal|demonstrate|identify|detect|find"
            r"|confirm"
            r"|develop|document)\b"
        ),
    ),
    (
        "NOT",
        (
            r"\bnot to have\b|\bno diagnosis of\b|\bnothing (?:suggestive|concerning"
            r"|suspicious) (?:of"
            r"|for)\b"
        ),
    ),
    (
        "NOT",
        (
            r"\b(?:do|does|did)(?: not|n['’]t) (?:[a-z]+ly )?(?:think|believe|feel|suspect)"
            r"(?: that)?(?: (?:[\w'’-]+ ){1,4}?(?:has|have|had|is|are|was|were|represents?)\b)?"
            r"|\bno (?:one|relatives?|siblings?|family members?)"
            r"(?: in (?:the|his|her|their) (?:immediate )?family)? (?:has|have|had|with)\b"
            r"|\bneither\b[^.;,]{1,40}? nor\b[^.;,]{1,40}?"
            r" (?:shows?|showed|demonstrate[sd]?|reveal(?:s|ed)?|found|suggest(?:s|ed)?)\b"
        ),
    ),
    # Negation that reaches back.
    (
        "NOT_POST",
        (
            rf"\b(?:(?:was|were|is|been) (?:[a-z]+ ){{1,4}}?)?(?:and"
            rf"|but) (?:{_ADVERB} )*{_EXCLUDED}\b(?=[ ]*(?:[.,;)]|by|with|on|$))"
        ),
    ),
    (
        "NOT_POST",
        (
            rf"\b(?:(?:has|have|had)(?: {_ADVERB})* )?(?:is|was|were|are|been|being"
            rf"|now)(?: (?:{_ADVERB}|been|being|considered and))* "
            rf"{_DEGREE}{_EXCLUDED}\b(?! (?:for|of)\b)"
        ),
    ),
    (
        "NOT_POST",
        (
            rf"\b{_NOT_AUX} (?:(?:{_ADVERB}|be|been|being|to be) )*{_SEEN}\b"
            rf"(?! (?:to|as|with|that)\b|[ ]*,? (?:because|due)\b)"
        ),
    ),
    (
        "NOT_POST",
        (
            rf"\b(?:{_LINKED} |(?:makes?|making|made|renders?) (?=\w))?{_DEGREE}"
            r"(?<!not\s)(?<!n't\s)(?:unlikely|improbable|doubtful|doubted)\b(?=[ ]*(?:[.,;)]|given"
            r"|by"
            r"|based|at|on|in|as|due|because|and|but|$))"
        ),
    ),
    (
        "NOT_POST",
        rf"\b{_LINKED} {_DEGREE}(?:negative|neg|nonreactive|non-reactive)\b",
    ),
    ("NOT", r"\brefus(?:es|ed|ing|al of)\b"),
    # Doubt that reaches forward.
    (
        "RISK",
        (
            r"\brisks?(?: factors?)? (?:for|of)\b|\b(?:prone|predisposed"
            r"|predisposes|susceptible|vulnerable|predisposition) (?:to|for)\b"
        ),
    ),
    (
        "POSSIBLE",
        (
            r"\b(?:check|checks|checking|test|tests|evaluate|evaluates|assess|assesses)"
            r"(?: (?!positive\b)[a-z]+){0,2}? (?:for|against|about|regarding)\b"
        ),
    ),
    (
        "RISK",
        (
            r"\b(?:screen|screens|surveillance|monitor|monitors|watch|watches|vigilance|alert"
            r"|prophylax\w+|protect\w*|caution\w*|warn\w*|precautions?|anticipatory guidance"
            r"|vaccinat\w+|immuni[sz]\w+)"
            r"(?: (?!positive\b)[a-z]+){0,2}? (?:for|against|about|regarding)\b"
        ),
    ),
    (
        "RISK",
        (
            r"\b(?:fears?|fearful|afraid|scared|anxious|anxiety|worry|worries|worrying|nervous"
            r"|phobia)"
            r" (?:of|about|that|over|regarding|for)\b(?: (?:having|getting|developing))?"
        ),
    ),
    (
        "RISK",
        r"\b(?:exposed|exposures?) (?:at \w+ )?to\b|\b(?:close |recent |sick )?contact with\b",
    ),
    (
        "POSSIBLE",
        (
            r"(?<!\w)\?[ ]?(?=[a-z])|\b(?:query|queries|unconfirmed|unverified|alleged"
            r"|working diagnosis(?: of)?"
            r"|diagnostic possibilit(?:y|ies)(?: of| include)?|could this be|possibility of)\b"
        ),
    ),
    (
        "POSSIBLE_POST",
        (
            r"\b(?:less|not) likely\b(?! (?:to|than)\b)|\bas a possibility\b"
            r"|\b(?:is|are|remains?) (?:still )?(?:a |the )?(?:possibility|concern|consideration"
            r"|possible"
            r"|on the differential|questionable|uncertain|unclear)\b"
            r"|\b(?:has|have) been (?:suspected|questioned|raised|considered)\b(?! and)"
            r"|\bin question\b"
        ),
    ),
    (
        "RISK",
        (
            r"\b(?:go|come|return|report|head|proceed) (?:back |right |directly )*(?:to|into)"
            r" (?:the |an? |our |your |nearest )*(?:er|ed|emergency|clinic|hospital|office"
            r"|urgent care)\b"
            r"[^.;]{0,40}?\b(?:for|with|if|when)\b"
        ),
    ),
    # Prevention, and what is not done yet.
    (
        "RISK_POST",
        (
            r"\b(?:prophylaxis|ppx|precautions?|prevention|risks?(?! factors? (?:is|are|was|were))"
            r"|screen(?:ing)?(?! (?:was |is |were )?(?:positive|abnormal))|awareness|education)\b"
            r"(?! (?:for|of|against|about|regarding)\b)"
        ),
    ),
    (
        "PLANNED",
        (
            rf"\b(?:(?:is|was|are|were|be|been|has|have|had|will|to) (?:{_ADVERB} )*)*"
            r"(?:scheduled|booked|slated|planned|planning|plans?|awaiting|awaits|waiting"
            r"|(?:waiting|wait|transplant) list(?:ed)?|waitlisted|listed"
            r"|referr(?:ed|al)(?: (?:placed|made|sent|given|entered))?|refer|due|overdue"
            r"|proceed(?:ing)?|candidate|set up|eligible"
            r"|consented|recommendation|order(?:s|ed)?|arranged)"
            r"(?: (?:him|her|them|patient|pt|back))?"
            r" (?:for|to (?:undergo|have|get|obtain|perform|do|repeat|proceed with))\b"
            r"(?: (?:an?|the|her|his|repeat|follow-up|elective|outpatient))*"
        ),
    ),
    (
        "PLANNED",
        (
            r"\b(?:(?:will|to|should|needs? to|plans? to|going to|wants? to|wishes to"
            r"|intends? to) (?:be )?"
            rf"(?:{_ADVERB} )*(?:undergo|have|get|need|needs|require|obtain|order|schedule|repeat"
            r"|receive|perform|arrange|proceed with|pursue|benefit from|set up|book)"
            r"|(?:recommends?|recommending|advise[sd]?|suggest(?:s|ed)? (?:an?|repeat|getting)"
            r"|awaiting|awaits|consent(?:ed)? for|needs|requires"
            r"|(?:discuss(?:ed)?|offer(?:ed)?|request(?:ed|s)?|defer(?:red)?)(?= (?:an? )?\w+)))"
            r"\b(?: (?:an?|the|her|his|repeat|follow-up|elective|outpatient))*"
            r"|(?<![^.;:•\s-]\s)(?:schedule|obtain|order|arrange|repeat|book|get"
            r"|refer for|check|plan|proceed (?:with|to))\b"
        ),
    ),
    (
        "LATER_POST",
        (
            r"\b(?:tomorrow|next (?:week|month|year|visit|spring|summer|fall|winter|monday|tuesday"
            r"|wednesday|thursday|friday)|(?:in|within|after) (?:the next )?(?:\d+|an?|one|two"
            r"|three|four|six|eight|twelve|a few|several)(?:[ ]?(?:-|to)[ ]?\d+)?"
            r"(?: |-)(?:days?|weeks?|wks?|months?|mos?|years?|yrs?)\b(?! (?:ago|of)))"
        ),
    ),
    # Time.
    (
        "ONSET_POST",
        (
            r"\b(?:at|from) (?:the )?age (?:of )?\d+\b|\bwhen (?:he|she|they) (?:was|were) (?:\d+"
            r"|a "
            r"|in |an |young)"
            r"|(?<!than\s)(?<!as\s)\b(?:back )?in (?:(?:early|late|mid|january|february|march"
            r"|april|may|june|july"
            r"|august"
            r"|september|october|november|december|jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec"
            r"|spring"
            r"|summer|fall|winter)[\s,.-]*)+(?:of )?(?:19|20)\d\d\b"
            r"|\b(?:\d+|one|two|three|four|five|six|seven|eight|nine|ten|several|many|few"
            r"|couple(?: of)?)\+?"
            r" (?:years?|yrs?|months?|decades?) (?:ago|prior|previously|earlier|back|before)\b"
            r"|\b(?:decades?|years|months) (?:ago|before|earlier|back)\b"
            r"|\bin (?:childhood|infancy|adolescence|the past|the remote past)\b"
            r"|(?<!than\s)(?<!as\s)\bin (?:19|20)\d\d\b"
            r"|\bas an? (?:(?:young|small|little|premature) )?(?:child|kid|teenager|baby|infant"
            r"|toddler"
            r"|man|woman|adult)\b"
        ),
    ),
    (
        "PAST_POST",
        (
            r"\b(?:that |which )?(?:(?:has|have|had|is|was|were|are) (?:also |been "
            r"|since )*)?(?:now "
            r"|since |fully |completely |spontaneously |subsequently |eventually )*"
            r"(?:resolved|healed|cured|eradicated)\b(?=[ ]*(?:[.;,)]|in|after|with|by"
            r"|without|on|spontaneously|completely|$))"
            r"|\b(?:completed|finished) (?:treatment|therapy)\b"
        ),
    ),
)
"""Kinds with their patterns; the first pattern that matches at a place is taken."""


def grammar_rows() -> list[tuple[str, str]]:
    """Return the patterns of the grammar with blanks that match one or more blanks."""
    rows = (*LOOKALIKES, *STATEMENTS, *GRAMMAR)
    return [(kind, row.replace(" ", "[ ]+").replace("[[ ]+]", "[ ]")) for kind, row in rows]
