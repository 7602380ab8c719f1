"""Phrases with a negative word that do not deny the finding beside them.

`Gram-negative bacteremia` states the bacteremia, and `no change in her cough` states the cough. The
rows have the form of `cue_grammar` and are tried before it. A blank in a pattern matches one or
more blanks.
"""

from __future__ import annotations

_NO = (
    r"(?:no|not|nor|never|without|w/o|den(?:y|ies|ied|ying)(?: having)?|negative for"
    r"|(?:(?:has|have|had|does|do|did|is|are|was|were) (?:[a-z]+ly )?not"
    r"|(?:has|have|had|does|do|did)n['’]t)"
    r"(?: (?:had|have|having|been|experienced?|reported?|notic(?:e|ed)|not(?:e|ed)|endorsed?|seen"
    r"|shown?|developed?|any))?)"
)
_KINDS = (
    r"(?:(?:any|an?|the|much|further|new|recent|interval|significant|real|acute|marked|major|obvious"
    r"|substantial|notable|clinical|radiographic|definite|known|apparent|late|long-term|residual"
    r"|serious|evidence of|signs? of|symptoms? of|history of|reported|noted) )*"
)
_CHANGE = (
    r"(?:changes?|increases?|decreases?|improvements?|worsening|progression|reductions?|difference"
    r"|deterioration|escalation|resolution|relief|exacerbations?|flares?(?:-?ups?|[ ]ups?)?)"
)
_SEQUEL = (
    r"(?:complications?|sequelae|side(?:-| )effects?|(?:adverse|ill|untoward) (?:effects?|events?"
    r"|reactions?)|contra-?indications?|interactions?"
    r"|(?:problems?|issues?|trouble|difficult(?:y|ies)|concerns?)(?: with)?(?= (?:taking"
    r"|tolerating|affording|obtaining|getting|using|injecting)\b))"
)
_MARKERS = (
    r"(?:gram|cultures?|smear|node|receptor|hormone|triple|double|antibody|antigen|toxin|ANA|RF"
    r"|CCP|Ph|Philadelphia|EGFR|ALK|[BKN]RAS|BRAF|HPV|EBV|Rh|Coombs|DAT|ER|PR|HER2|AFB|coagulase"
    r"|lactose|oxidase|urease|estrogen|progesterone|HLA-B27|BRCA[12]?|JAK2|BCR-ABL1?|CD\d+|IgG)"
)
"""What an adjective with `negative` names: the words behind the adjective are not denied."""

LOOKALIKES: tuple[tuple[str, str], ...] = (
    (
        "ADJACENT_NOT_POST",
        (
            r"(?<=\w)[\u2010\u2011-]negative\b(?! (?:pressure|predictive|margins?|balance)\b)"
            r"|(?<=\w) (?:was )?negative\b(?= (?:man|woman|male|female|patient|pt|person|individual"
            r"|donor|mother|father|partner|infant|newborn)\b)"
        ),
    ),
    ("NEUTRAL", rf"\b{_MARKERS} negative\b(?= [a-z])"),
    (
        "NEUTRAL",
        (
            r"\bno (?:stranger|wonder|surprise|secret|denying|exception)\b(?: (?:to|that))?"
            r"|\bno (?:question|doubt) (?:that|but|about)\b"
            r"|\bif (?:it )?(?:were |was |is |had )?not (?:been )?for\b"
            r"|\bnot (?:un|in)[a-z]+ly\b|\bnot (?:uncommon|unusual|infrequent|insignificant)\b"
            r"|\bnothing (?:but|except|other than)\b"
        ),
    ),
    (
        "DENIED_PART",
        (
            rf"\b{_NO} {_KINDS}{_CHANGE}(?: (?:in|of|from|to|with|on))"
            r"(?: (?:the|his|her|their|this|these|known))*\b"
            rf"|\b{_NO} {_KINDS}{_SEQUEL}(?: (?:of|from|to|with|on|due to|related to|after"
            r"|attributed to|taking|tolerating|affording|obtaining|getting|using|injecting))+"
            r"(?: (?:the|his|her|their|this|these|known))*\b"
            r"|\b(?:not|never|no|without|den(?:y|ies|ied|ying)|(?:has|have|had|did|does|do)n['’]t)"
            r" (?:been )?(?:miss(?:ed|ing|es)?|skip(?:s|ped|ping)?|forg[eo]t\w*)"
            r"(?: (?:to take|taking|any|a single|a|one|doses?|of|her|his|their|the))*\b"
        ),
    ),
    (
        "NEUTRAL",
        (
            r"\bno (?:significant |interval |further |real )?(?:changes?|increase|improvement"
            r"|relief|worsening|progression|reduction|decrease)\b(?: in\b)?"
        ),
    ),
    # A denial about a property of a finding that the patient has.
    (
        "UNCLEAR",
        (
            r"\bden(?:y|ies|ied|ying) that (?:the|his|her|their|this|these)\b"
            r"(?! (?:patient|pt|child|infant|baby|boy|girl|mother|father)\b)"
            r"|\bnot (?:yet )?(?:improved|better|improving)[ ]?:"
            r"|\bdenied by (?:the |her |his |their )?(?:insurance|insurer|payer|plan|medicare"
            r"|medicaid|pharmacy)\b"
        ),
    ),
    # A finding that is less probable than others, or that a test does not prove.
    (
        "POSSIBLE",
        (
            r"\bless (?:likely|probable)\b(?= (?!than\b|to\b)[a-z])|\bnot unlikely\b"
            r"|\b(?:insufficient|inadequate|not enough|limited|weak|equivocal|inconclusive"
            r"|conflicting) (?:evidence|findings?|data|support|results?|criteria) (?:of|for|to"
            r" (?:support|suggest|confirm|establish|diagnose|make))\b"
            r"(?: (?:an?|the) diagnosis of\b)?"
            r"|\b(?:cannot|can['’]t|could not|can not|unable to) (?:be )?(?:ruled? in"
            r"|definitively diagnose)\b"
        ),
    ),
    # What the patient is afraid of, or has read about.
    (
        "RISK",
        (
            r"\b(?:fears|dreads?|googled|(?:has |had )?(?:read|reading|heard) (?:online )?about"
            r"|looked up|researched)\b(?: (?:the )?(?:symptoms|possibility) of)?(?! that\b)"
        ),
    ),
    # The reason of an act that has not happened yet.
    ("RISK", r"\bfor (?=(?:[a-z]+,? ){1,3}?(?:please |may |can )?(?:take|give|use)[ ])"),
    (
        "RISK",
        (
            r"\b(?:side|adverse|ill|untoward)(?:-| )(?:effects?|reactions?|events?)"
            r"(?= (?:of|from|to|with) [^.;:]{1,50}?"
            r"(?:,? (?:includ(?:e|es|ed|ing)|such as|like|e\.g\.)"
            r"|:))"
        ),
    ),
    # The finding is part of the name of a protocol.
    (
        "RISK_POST",
        (
            r"\b(?:protocols?|code|alert|bundle|pathway|order set|action plan|questionnaire"
            r"|support group|educator|awareness|patients|population|cohort|research|charity)\b"
        ),
    ),
    (
        "NOT_POST",
        (
            r"[ ]?[:(–-][ ]*(?:deleted|retracted|voided)\b"
            r"|\b(?:(?:is|was|were|has|been|now) )*(?:removed|deleted|struck|taken off)"
            r" (?:(?:from|off) )?(?:the |his |her )?"
            r"(?:(?:problem|diagnos[ie]s|active|master) )*list\b"
        ),
    ),
    (
        "UNCLEAR",
        r"\berror(?: in (?:charting|entry))?[ ]?[:–-]",
    ),
    ("NEAR_NOT_POST", r"(?<=[a-z)])[ ]+(?:no|none|denie[sd])(?=[ ]*(?:[,;]|\.?$))"),
    ("AFFIRM", r"(?<=[a-z)])[ ]+yes(?=[ ]*(?:[,;]|\.?$))"),
)
"""Kinds with their patterns; the first pattern that matches at a place is taken."""
