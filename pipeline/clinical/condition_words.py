"""The phrases that state the status, the severity, the onset and the place of a condition.

Each pattern ties a word to the mention: only words that name no other subject may lie between.
"""

from __future__ import annotations

import re

from pipeline.clinical.date_forms import DATE_FORM

_MONTHS = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Sept|Oct|Nov|Dec)[a-z]*\.?"
DATE = (
    rf"(?:{DATE_FORM}|(?:early|late|mid)?[ -]?{_MONTHS},?[ ](?:of[ ])?\d{{4}}|\d{{1,2}}/\d{{4}}"
    r"|\d{4}-\d{2}|(?:early[ ]|late[ ]|mid-?[ ]?)?(?:19|20)\d{2})(?![\d/-])"
)
"""A printed date with a year."""
_COUNT = (
    r"(?:\d+(?:\.\d+)?(?:[ ]?(?:-|–|to)[ ]?\d+)?|an?|one|two|three|four|five|six|seven|eight|nine"
    r"|ten|several|a[ ]few|few|many|a[ ]couple[ ]of)"
)
_DURATION = (
    r"(?:(?:about|approximately|approx\.?|around|over|more[ ]than|almost|nearly|at[ ]least|the"
    r"|past|last|~|>)[ ]?)*"
    rf"{_COUNT}\+?[ -]?(?:min(?:ute)?|hours?|hrs?|h|days?|d|weeks?|wks?|w|months?|mos?|years?|yrs?"
    r"|y)s?\b"
)
_ONCE = (
    r"(?:early[ ]|late[ ])?(?:childhood|birth|infancy|adolescence|yesterday|today|this[ ]morning"
    r"|last[ ](?:night|week|month|year)|(?:the[ ])?age(?:[ ]of)?[ ]\d{1,3})\b"
)
_FILL = (
    r"(?:[ ,:()\[–—-]|\b(?:which|that|this|it|these|they|has|have|had|is|was|were|are|been|being"
    r"|now|since|then|also|currently|completely|fully|spontaneously|subsequently|clinically"
    r"|recently|later|quickly|entirely|totally|all|status|clinical|condition|problem|disease|the"
    r"|symptoms?[ ]of|acute|chronic|mild|moderate|severe|left|right|bilateral|recurrent"
    r"|single[ ]episode|major)\b"
    rf"|\b(?:in|on|from|of)[ ]{DATE}|{DATE})*"
)
"""The words between a mention and its status that name no other subject."""

_MODIFIER = (
    r"(?:the|his|her|their|this|an?|prior|previous|known|acute|chronic|subacute|mild|moderate|severe"
    r"|left|right|bilateral|recent|upper|lower|pulmonary|primary|secondary)"
)
_REMISSION = (
    r"(?:in|achieved|entered|reached)[ ](?:(?:complete|full|partial|early|sustained|clinical"
    r"|molecular|deep|stable|long-?term|cytogenetic|hematologic|an?|durable|remains?|first"
    r"|second)[ ])*remission|remission"
)
AHEAD: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (status, re.compile(rf"\b(?P<cue>{form})[ ]+(?:{_MODIFIER}[ ]+){{0,3}}$", re.I))
    for status, form in (
        ("resolved", r"resolved|resolution[ ]of|cured"),
        ("remission", r"remission[ ](?:of|from)"),
        ("relapse", r"relapsed|relapse[ ]of"),
        ("recurrence", r"recurrence[ ]of"),
        ("inactive", r"inactive"),
        ("active", r"(?<![\w-])active"),
    )
)
"""Status → its phrase in front of a mention."""
BEHIND: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (status, re.compile(rf"(?P<gap>{_FILL})(?<![\w-])(?P<cue>{form})\b(?P<rest>.*)", re.I | re.S))
    for status, form in (
        ("resolved", r"resolved|cured|healed"),
        ("remission", _REMISSION),
        ("relapse", r"in[ ](?:\w+[ ])?relapse|relapsed"),
        ("recurrence", r"recurred|has[ ]returned|recurrence"),
        ("inactive", r"inactive"),
        ("active", r"active"),
    )
)
"""Status → its phrase behind a mention."""
UNSURE_AHEAD = re.compile(
    r"\b(?:if|once|until|unless|whether|should|expect\w*|hope\w*|goal|would|will|may|might|could"
    r"|must|can|no|not|never|without|risk|chance|prevent\w*|monitor\w*|surveillance|evaluat\w*"
    r"|rule|r/o|possible|possibly|probabl\w+|likely|concern\w*|fear\w*|suspect\w*|screen\w*|watch"
    r"|signs?|partial(?:ly)?|nearly|almost|mostly|incomplete\w*|un|non|denies|denied|aim|target"
    r"|induce|induction|awaiting|pending|appears?|seems?|assume\w*|presum\w*|reportedly|perhaps"
    r"|minimally|slowly|mother|father|brother|sister|son|daughter|husband|wife)\b|\?|n['’]t\b",
    re.I,
)
"""Words ahead that make a status no statement about the present."""
UNSURE_BEHIND = re.compile(
    r"[ ]*(?:\?|\b(?:not|never|n['’]t|pending|unlikely|expected|possible|soon|induction"
    r"|therapy|goal|vs\.?|versus|or|risk|prevention|rate|score|surveillance|monitoring)\b)"
    r"|.*\b(?:but|however|then|until|except|though|although|recurr\w*|return\w*|relaps\w*|again"
    r"|came[ ]back|reappear\w*|persist\w*|worse\w*|not[ ](?:yet|fully|completely)|flare\w*"
    r"|now[ ](?:active|resolved|inactive|in))\b",
    re.I | re.S,
)
"""Words behind that limit or withdraw a status."""
HEADINGS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("active", re.compile(r"\b(?:active|current|ongoing)\b", re.I)),
    ("resolved", re.compile(r"\bresolved\b", re.I)),
    ("inactive", re.compile(r"\binactive\b", re.I)),
)
PROBLEM_HEADING = re.compile(
    r"[ #*•-]*(?:(?:active|inactive|resolved|current|ongoing|past|chronic|hospital|principal"
    r"|medical|health|patient|and|or|the|other|/|&|,)[ ,/&]*)*"
    r"(?:problems?(?:[ ]list)?|diagnos[ei]s|conditions|issues|concerns)[ ]*(?:list)?[ ]*:?[ ]*",
    re.I,
)
"""A heading of a list of problems, alone on its line."""
NOT_PRESENT = re.compile(
    r"\b(?:s/p|status[ -]post|treated|treatment|history|h/o|hx|resol\w*|remission|cured|ruled"
    r"|prior|previous\w*|past|former\w*|old|remote|healed|no[ ]longer|inactive|recovered|prevent\w*"
    r"|prophyla\w*|screen\w*|risk|family|r/o|rule|vaccin\w*|immuni[sz]\w*|negative|neg|normal"
    r"|work-?up|w/u|educat\w*|counsel\w*|evaluat\w*|if|unless|improved|ago|last[ ](?:year|month)"
    r"|childhood|was|were|had|after|post|concern\w*|possible|likely|probabl\w+|suspect\w*|versus"
    r"|vs|surveillance|monitor\w*|recurr\w*|relaps\w*|active\w*|not|no|never|without|denie[sd])\b"
    r"|\?|~~|(?:19|20)\d{2}",
    re.I,
)
"""Words that leave open whether a condition of the present section is present."""

GRADE = r"(?:mild|moderate|severe)"
GRADE_AHEAD = re.compile(
    rf"(?<![\w-])(?P<grade>{GRADE})[ ,]+(?:(?!and\b|or\b|with\b|without\b|but\b|to\b|in\b|of\b"
    r"|for\b|due\b|from\b)[a-z][a-z-]*[ ]+){0,3}$",
    re.I,
)
GRADE_BEHIND = re.compile(
    r"[ ]*(?:[,:(–—-][ ]*)?(?:(?:recurrent|single[ ]episode|chronic|acute|persistent|currently"
    r"|now),?[ ]+)*(?:(?:is|was|are|remains?|rated(?:[ ]as)?|described[ ]as|severity|grade)[: ]+)*"
    rf"(?P<grade>{GRADE})(?=[ ]*(?:$|[.,;:)\]]|(?:in[ ]severity|persistent|intermittent|with"
    r"|without|intensity|at[ ]times|today|now)\b|and[ ](?!mild|moderate|severe)[a-z]))",
    re.I,
)
GRADES = re.compile(rf"(?<![\w]){GRADE}(?:ly)?\b", re.I)
GRADE_RANGE = re.compile(
    rf"{GRADE}(?:ly)?[ ]?(?:-|–|/|to|or|and)[ ]?(?:to[ -])?{GRADE}|(?:not|less|non|no[ ]longer"
    r"|previously|formerly|initially|was|were|more|very|once|never|if|unless|usually|sometimes"
    rf"|occasionally)[ -](?:\w+[ ])?{GRADE}\b|{GRADE}[ ]?\?|[?][ ]?{GRADE}",
    re.I,
)
"""More than one grade, or a grade that is denied or past."""

SITE = (
    r"(?:knees?|hips?|shoulders?|ankles?|elbows?|wrists?|hands?|foot|feet|arms?|legs?|thighs?"
    r"|cal(?:f|ves)|eyes?|ears?|breasts?|kidneys?|lungs?|neck|back|chest|abdomen|head|face|jaw"
    r"|tongue|throat|nose|scalp|fingers?|thumbs?|toes?|heels?|groin|flank|buttocks?|spine|femur"
    r"|tibia|fibula|humerus|radius|ulna|clavicle|pelvis|sacrum|ribs?|skull|mandible|maxilla|colon"
    r"|rectum|stomach|esophagus|liver|pancreas|spleen|gallbladder|bladder|prostate|uterus|cervix"
    r"|ovar(?:y|ies)|testis|testicles?|thyroid|brain|heart|skin|forearms?|shins?|forehead|cheeks?"
    r"|lips?|gums?|axillae?|armpits?|palms?|soles?|quadrant|lobes?)"
)
_SITE_WORDS = (
    r"(?:upper|lower|mid|middle|inner|outer|lateral|medial|anterior|posterior|distal|proximal|low"
    r"|big|great|little|index|ring|second|third|fourth|fifth|first)"
)
SITE_PHRASE = rf"(?:{_SITE_WORDS}[ -])*{SITE}"
SIDE = re.compile(
    r"(?<![\w-])(?P<side>left|right|bilateral(?:ly)?|both)(?![ -]?(?:hand(?:ed|[ ]domin)|now\b|away"
    r"|after\b|before\b|sided?[ ]to|ventric|atri|bundle|axis|shift|heart|the\b|AMA\b|against"
    r"|without|untreated|and[ ]right|greater|>|worse))",
    re.I,
)
SIDE_AHEAD = re.compile(
    rf"{SIDE.pattern}(?:[ -](?:sided?|{_SITE_WORDS}|{SITE}|acute|chronic|mild|moderate|severe"
    r"|[a-z]+(?:al|ic|ar))){0,4}[ -]+$",
    re.I,
)
SIDE_BEHIND = re.compile(
    r"[ ]*(?:(?:,|-|–|\()[ ]*)?(?:(?:of|in|on|to|at|over|involving|affecting)[ ]+(?:(?:the|her|his"
    rf"|their)[ ]+)?)?{SIDE.pattern}(?:[ -]+sided?)?"
    rf"(?:[ ]+(?:{SITE_PHRASE})|(?=[ ]*(?:[.,;)]|$))|[ ]+side\b)",
    re.I,
)
SITE_BEHIND = re.compile(
    r"[ ]*(?:,[ ]*)?(?:(?:of|in|on|to|at|over|involving|affecting|around)[ ]+(?:(?:the|her|his"
    rf"|their|both)[ ]+)*)(?:(?:left|right|bilateral)[ ]+)?(?P<site>{SITE_PHRASE})\b",
    re.I,
)
SITE_IN = re.compile(rf"(?<![\w-]){SITE_PHRASE}(?![\w-])", re.I)

SINCE = re.compile(
    r"(?:[ ,(:–—-]|\b(?:which|that|has|have|had|been|is|was|present|ongoing|persistent"
    r"|intermittent|worsening|progressive|constant|first|and|mild|moderate|severe|stable"
    r"|chronic|with|an|symptom|active)\b)*"
    r"(?P<printed>(?:since|onset(?:[ ](?:date|of|in|on|was))?[: ]*|began|started|beginning"
    rf"|starting)[ ]*(?:[:]|in|on|about|around)?[ ]*(?:{DATE}|{_DURATION}[ ]ago|{_ONCE}))",
    re.I,
)
"""An onset behind a mention."""
LASTING = re.compile(
    r"(?:[ ,(:–—-]|\b(?:which|that|has|have|been|is|present|ongoing|persistent|intermittent"
    r"|worsening|progressive|constant|mild|moderate|severe|lasting)\b)*"
    rf"(?P<printed>(?:x|×|for)[ ]?{_DURATION})(?![ ]*(?:of|course|ago\b|after|post))",
    re.I,
)
"""How long a symptom lasts."""
NOT_ITS_DAY = re.compile(
    r"\b(?:relaps\w*|recurr\w*|resol\w*|remission|treat\w*|last|seen|hospital\w*|admi\w+|diagnos\w*"
    r"|dx|surg\w*|repair\w*|remov\w*|flare\w*|exacerbat\w*|screen\w*|s/p|status[ ]post|test\w*"
    r"|negative|follow\w*|work-?up|therapy|vaccin\w*|visit)\b",
    re.I,
)
"""Words of another event, to which the day behind a mention belongs."""
GONE = re.compile(
    r"[^.;]{0,40}\b(?:gone|resolved|went[ ]away|subsided|cleared|stopped|ended|disappeared)\b", re.I
)
"""The end of a symptom: its length is not the time since its beginning."""
HAPPENED = re.compile(rf"[ ]*(?:\(|,|in\b|on\b)?[ ]*(?P<printed>{DATE})(?=[ ]*(?:[).,;]|$))", re.I)
"""The day of a past event, directly behind its name."""
HISTORY_AHEAD = re.compile(
    rf"(?P<printed>{_DURATION})[ ]+(?:history|hx|h/o)(?:[ ]of)?(?:[ ][a-z-]+){{0,3}}[ ]*$", re.I
)
DOSED = re.compile(
    r"\b(?:tak(?:e|es|ing|en)|given|treat\w*|prescri\w*|mg|mcg|prn|needed|admitted|admission"
    r"|hospitali[sz]ed|course|therapy|antibiotic\w*|use|used|apply|continue|medicat\w*|hold|rest"
    r"|work|return\w*|if|call)\b",
    re.I,
)
"""Words of a treatment or a stay, whose length is not the length of a symptom."""
ENDED = re.compile(rf"[ ]*(?:on|in|as[ ]of|by|,|\(|:|-)?[ ]*(?P<printed>{DATE})", re.I)
"""The end behind `resolved`."""
POSSIBILITIES: tuple[tuple[str, re.Pattern[str]], ...] = (
    (
        "differential",
        re.compile(r"\bdifferential\b|\bd?dx\b[^.]*\b(?:include|vs)|\bddx\b|\bvs\.?(?=[ ])"
                   r"|\bversus\b", re.I),
    ),
    (
        "provisional",
        re.compile(r"\b(?:provisional|working[ ]diagnosis|presum\w+|suspected|suspects?|probabl[ey]"
                   r"|likely|tentative)\b", re.I),
    ),
)  # fmt: skip
"""Words of a possible diagnosis, with its verification status. Other words mean `unconfirmed`."""
CONFIRMED = re.compile(
    r"\b(?:(?:biopsy|culture|pathology|lab|PCR|histolog\w+|angiograph\w+)[- ])?"
    r"(?:confirmed|proven)\b",
    re.I,
)
IN_ERROR = re.compile(
    r"\bentered[ ]in[ ]error\b|\berroneous(?:ly)?\b|\bcharted[ ]in[ ]error\b", re.I
)
DOUBT = re.compile(
    r"\b(?:possib\w+|probab\w+|likely|suspect\w*|presum\w+|question\w*|maybe|perhaps|may|might|could"
    r"|vs|versus|rule|r/o|concern\w*|differential|ddx|if|risk|screen\w*|evaluat\w*|consider\w*"
    r"|work-?up|unconfirmed|provisional|unclear|family|mother|father|sister|brother|aunt|uncle)\b"
    r"|\?",
    re.I,
)
"""Words of doubt, or of another person."""
GOVERNED = re.compile(
    r"[ ,]*\b(?:secondary[ ]to|due[ ]to|from|caused[ ]by|because[ ]of|with|after|following|for|on"
    r"|in[ ]the[ ]setting[ ]of|complicated[ ]by|related[ ]to|in|complicating)[ ]+"
    r"(?:[a-z-]+[ ]+){0,2}",
    re.I,
)
"""The words that put a mention behind another entity: what follows can be about either."""
UNPROVEN = re.compile(
    r"\b(?:not[ ](?:yet[ ])?(?:been[ ])?(?:confirmed|proven|established)|unconfirmed|unproven"
    r"|(?:unable|failed)[ ]to[ ]confirm|unlikely|not[ ]likely|doubtful|low[ ]suspicion)\b",
    re.I,
)
