"""The words and figures that may stand around the readings of a vital sign, by kind.

The first kind that matches at a place is taken. A place that no kind matches is unexplained.
"""

from __future__ import annotations

import re

_MONTH = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Sept|Oct|Nov|Dec)[a-z]*"
DATE = (
    r"(?:(?:on|from|in|as[ ]of|since|dated)[ ])?(?:"
    r"(?P<day>\d{4}-\d{2}-\d{2}|\d{1,2}[/.-]\d{1,2}[/.-]\d{2,4}"
    rf"|{_MONTH}\.?[ ]\d{{1,2}}(?:st|nd|rd|th)?,?[ ]\d{{4}}"
    rf"|\d{{1,2}}[ -]{_MONTH}[ -]\d{{2,4}})"
    rf"|(?P<part>\d{{1,2}}/\d{{1,2}}|\d{{1,2}}/\d{{4}}|{_MONTH}\.?[ ]\d{{1,2}}(?:st|nd|rd|th)?"
    rf"|{_MONTH}\.?[ ]\d{{4}}|(?<=in[ ])(?:{_MONTH}|\d{{4}})))(?![\d/.-]*\d)(?!\w)"
)
_TIME = (
    r"(?:(?:at|@|around|by)[ ]?)?(?:\d{1,2}:\d{2}(?::\d{2})?[ ]?(?:[ap]\.?m\.?(?!\w)|h(?:rs?|ours)?"
    r"(?!\w))?|\d{1,2}[ ]?[ap]\.?m\.?(?!\w)|(?<=at[ ])[0-2]\d[0-5]\d(?:[ ]?h(?:rs?|ours)?)?(?!\d)"
    r"|(?<=@[ ])[0-2]\d[0-5]\d(?!\d)|(?<=@)[0-2]\d[0-5]\d(?!\d)|[0-2]\d[0-5]\d(?=:[ ]"
    r"|[ ]?h(?:rs?|ours)?"
    r"(?!\w))(?:[ ]?h(?:rs?|ours)?)?|(?<=\()[0-2]\d[0-5]\d(?=\)))"
)
_SPAN = (
    r"(?:(?:after|for|x|within|over|in|at|about|last|past|the|q|every)[ ]?){0,3}~?\d+(?:\.\d)?"
    r"(?:-\d+)?[ -]?(?:min(?:ute)?s?|h(?:ou)?rs?|h|days?|d|weeks?|wks?|months?|mos?|years?|yrs?"
    r"|y/?o|seconds?|sec)(?!\w)(?:[ ](?:later|old|of[ ](?:age|rest)|post-?op))?"
)
_AGO = (
    r"(?:\d+|a|one|two|three|four|five|six|several|few|a[ ]few)[ ](?:days?|weeks?|months?|years?"
    r"|hours?|visits?)[ ](?:ago|prior|earlier|before)(?!\w)"
)
_EARLIER = (
    r"(?:(?:at|on|from|since|during|in|as[ ]of|the|his|her|their|than)[ ]){0,3}(?:(?:last"
    r"|prior|previous"
    r"|preceding|most[ ]recent[ ]prior)[ ](?:(?:office|clinic|recorded|known"
    r"|documented)[ ])?(?:visit|"
    r"appointment|encounter|check(?:up)?|week|month|year|night|admission|time|value|reading"
    r"|measurement|note|seen|spring|summer|fall|autumn|winter)|yesterday|previously|formerly"
    r"|compared[ ](?:to|with)|vs\.?|versus"
    r"|(?:last|prior|previous|earlier|historical|old|baseline)(?!\w))"
)
_EARLIER = rf"at[ ](?:the[ ]time[ ]of[ ])?birth(?!\w)|{_EARLIER}"
_CHANGE = (
    r"(?:(?:is|was|has|have|had|been|went|trended|trending)[ ]){0,2}(?:down|up|increas(?:ed?|ing)"
    r"|decreas(?:ed?|ing)|dropp(?:ed|ing)|spiked|climbed|peaked|recovered|rebounded|rose|risen"
    r"|fell|fallen|gain(?:ed)?|loss|lost|improv(?:ed"
    r"|ing)|reduced|lower(?:ed)?|change[ds]?|declined|went|trend(?:ed|ing)?|↑|↓)(?!\w)"
    r"(?:[ ](?:down|up))?"
)
_PLACE = (
    r"(?:while|when|in|on|at|with|by|via|per|the|both|his|her|using|taken|measured|obtained"
    r"|patient|a"
    r"|an|and|after|before|of|side|site|position|location|cuff|size|BP|method|source|src)"
)
_QUALIFIER = (
    r"(?:[LR](?=[ ](?:arm|leg|wrist|thigh|side))|sitting|seated|standing|lying|supine"
    r"|recumbent|prone|upright|semi-fowlers?|reclining|left"
    r"|right|bilateral|upper|lower|extremity|arms?|legs?|thigh|wrist|ankle|forearm|LUE|RUE|LLE|RLE"
    r"|[RL]A(?!\w)|brachial|radial|apical|pedal|carotid|femoral|oral(?:ly)?|PO|axillary|axilla"
    r"|rectal"
    r"(?:ly)?|tympanic|temporal(?:[ ]artery)?|forehead|ear|mouth|skin|core|bladder|esophageal"
    r"|manual"
    r"(?:ly)?|automat(?:ic|ed)|auto|machine|doppler|large|small|adult|child|regular|irregular(?:ly"
    r"[ ]irregular)?|reg|irreg|rhythm|rate|normal|abnormal|stable|unlabored|labored|even|sinus"
    r"|at[ ]rest|rest(?:ing)?|ambulat(?:ing|ion|ory)|walking|exertion|exercise|activity|asleep"
    r"|awake"
    r"|sleeping|crying|calm|agitated|scale|shoes|clothes|clothed|unclothed|stated|reported"
    r"|estimated|measured|dry|room[ ]air|RA(?!\w)|ambient[ ]air|air|nasal[ ]cannula|NC(?!\w)|NRB"
    r"|non-?rebreather|face[ ]?mask|mask|facemask|simple|venturi|trach(?:[ ]collar)?"
    r"|vent(?:ilator)?"
    r"|high[ ]flow|HFNC|bi-?pap|cpap|oxygen|supplemental|O2|home|clinic|office|triage|arrival"
    r"|admission|discharge|ED|ER|OR|PACU|monitor|fluids?|bolus|medication|meds?|dialysis|HD|morning"
    r"|afternoon|evening|overnight|night|midnight|noon|bedtime|AM|PM)(?!\w)(?!/)"
)
_O2 = (
    r"(?:(?:on|with|via|to|at)[ ])?\d{1,2}(?:\.\d)?[ ]?(?:LNC|L|LPM|lit(?:er"
    r"|re)s?)(?:[ ]?/[ ]?min(?:ute)?"
    r"|[ ]per[ ]min(?:ute)?)?(?:[ ](?:of[ ])?(?:NC|O2|oxygen|nasal[ ]cannula))?(?!\w)"
    r"|(?:(?:on|with|at)[ ])?(?:\d{2,3}[ ]?%[ ]?(?:FiO2|O2|oxygen|venti(?:mask)?|venturi)"
    r"|FiO2[ :=]*(?:of[ ])?\d{1,3}(?:\.\d+)?[ ]?%?)"
)
_DOSE = (
    r"\d+(?:\.\d+)?[ ]?(?:mg|mcg|mL|cc|units?|mEq|puffs?|tablets?|tabs?|pills?|doses?|gtt"
    r"|blankets?|pillows?)(?!\w)(?:/(?:kg|hr|h|min|day|kg/min))?"
)
_PERCENTILE = (
    r"(?:(?:at|in|is|the|for|of)[ ]){0,3}<?>?\d{1,3}(?:\.\d+)?[ ]?(?:(?:st|nd|rd"
    r"|th)?[ ]?(?:%[ ]?(?:ile|tile)|"
    r"percentiles?|centiles?|%)|(?:st|nd|rd|th)(?!\w)(?:[ ]?(?:%(?:[ ]?ile)?|percentile|centile))?)"
    r"(?!\w)"
    r"|z(?:[ -]?score)?[ ]?[:=]?[ ]?(?:of[ ])?[-–+]?\d+(?:\.\d+)?"
    r"|[-–+]?\d+(?:\.\d+)?[ ]?SDS?(?!\w)"
)
_NO_VALUE = (
    r"(?:percentiles?|centiles?|%[ ]?iles?|for[ -](?:age|length|height)|z-?scores?|SDS"
    r"|loss(?!\w)|gain"
    r"(?!\w)|change(?!\w)|chart|curve|machine|bearing|based|control|management|medications?|meds"
    r"|cuff[ ]size|location|not|unable|refused|deferred|log|diary|check|velocity)(?!\w)"
)
_LIMIT = (
    r"[ ]?\+|[, ]{0,2}(?:and|or)[ ](?:less|more|greater|higher|lower|above|below|over"
    r"|under|up|down)(?!\w)"
)
_BESIDE_GOAL = (
    r"(?:(?:at|above|below|near|over|under|within|not[ ]at|not[ ]to|to|meets?|out[ ]of)[ ]){1,2}"
    r"(?:the[ ]|his[ ]|her[ ])?(?:goal|target)(?!\w)(?:[ ]range)?"
)
_GOAL = (
    r"(?:(?:is|the|his|her|our|a|as|with)[ ]){0,3}(?:goals?|targets?|thresholds?|cut-?offs?"
    r"|limits?|parameters?|should|must|ought|desired|to[ ]be|needs?)(?!\w)(?:[ ](?:range|is|of"
    r"|be|to"
    r"|remain|stay|bp|hr|weight|spo2|map|temp))*"
)
_ERROR = (
    r"(?:entered[ ]in[ ]error|in[ ]error|error(?:neous)?|erroneous|invalid|artifact|inaccurate"
    r"|unreliable|wrong[ ]patient|mistake\w*|disregard)(?!\w)"
)
_MARK = (
    r"(?:\band[ ]|\bthen[ ]|\bon[ ]|\ba[ ]){0,2}(?:repeat(?:ed)?(?:[ ](?:BP|reading|value))?"
    r"|re-?check(?:ed)?"
    r"|later|now|today|currently|current|actual|subsequently|follow(?:ed[ ]by|ing)|then|post"
    r"|after|retake|"
    r"(?:1st|2nd|3rd|4th|first|second|third|fourth|next|initial|final|another)(?:[ ](?:reading"
    r"|measurement"
    r"|value|BP))?|best|worst|averag(?:e|ing)|avg|mean|lowest|highest|max(?:imum)?"
    r"|min(?:imum)?|peak"
    r"|nadir|high|low)(?!\w)"
)
_FILL = (
    r"(?:running|well|poorly|controlled|uncontrolled|found|ranges?|it|is|was|were|are|of|at|in"
    r"|to|noted|readings?|has|have|been|with|a|reached|remains?|remained"
    r"|this|only|about|around|approximately|approx|roughly|recorded|initially|again|still|the"
    r"|and|it|as"
    r"|on|elevated|hypertensive|values?|by|up|trend|for|you|your|he|she|rang(?:ed?"
    r"|ing)[ ]from|rang"
    r"(?:ed?|ing)|from|tall|we|got|or|his|her|our|we|came|back|sustained|persistently|slightly"
    r"|source|src|adult|high|low|both)(?!\w)"
)
_FLAGS = r"(?:HH|LL|H|L|A|!|\*{1,2}|†|high|low|abnormal|critical)"
_FLAG = rf"\({_FLAGS}\)|{_FLAGS}(?![\w/])"
_SIGN = r"[<>≤≥]=?|(?:less|greater|more|higher|lower)[ ]than|(?:over|under|above|below)(?!\w)"
_SIGN = r"[<>≤≥]=?|(?:less|greater|more|higher|lower)[ ]than|(?:over|under|above|below)(?!\w)"
_FOUND = r"(?:found|noted|felt|reported|measured|recorded)[ ]to[ ]be(?!\w)"
_ARROW = r"-{1,2}>|=>|→|➔|>>"

TOKEN = re.compile(
    "|".join(
        f"(?P<{kind}>{pattern})"
        for kind, pattern in (
            ("arrow", _ARROW),
            ("found", _FOUND),
            ("error", _ERROR),
            ("beside", _BESIDE_GOAL),
            ("goal", _GOAL),
            ("limit", _LIMIT),
            ("ago", _AGO),
            ("percentile", _PERCENTILE),
            (
                "day24",
                r"/?(?:(?:over|in|for|the|last|past)[ ]){0,3}24[ ]?-?h(?:r|rs|ours?)?(?!\w)",
            ),
            ("date", DATE),
            ("time", _TIME),
            ("span", _SPAN),
            ("oxygen", _O2),
            ("dose", _DOSE),
            ("times", r"x[ ]?\d(?!\d)|\#\d(?!\d)|\d[.):](?=[ ]\d)"),
            ("none", _NO_VALUE),
            ("earlier", _EARLIER),
            ("change", _CHANGE),
            ("sign", _SIGN),
            ("mark", _MARK),
            ("qualifier", _QUALIFIER),
            ("flag", _FLAG),
            ("fill", _FILL),
            ("place", rf"{_PLACE}(?!\w)"),
            ("comma", r"[,&]"),
            ("slash", r"/(?=[ ]?\d)"),
            ("open", r"[(\[]"),
            ("close", r"[)\]]"),
            ("link", r"[:=~]|[-–—](?=[ ])|\.(?=[ ]?[:=])"),
        )
    ),
    re.I,
)
TOKEN_OF_PERCENT = re.compile(TOKEN.pattern.replace(_PERCENTILE, "(?!)"), re.I)
"""For vital signs in per cent, whose numbers are never percentiles."""
MORE = re.compile(
    r"[ ](?:(?:more|less|higher|lower|heavier|lighter|above|below|under|over(?![ ]\d+[ ]?h))(?!\w)"
    r"(?![ ](?:normal|goal|target|the[ ](?:goal|target)))"
    r"|(?:gain|loss|increase|decrease|overweight|underweight|change|drop)(?!\w)"
    r"|(?:up|down)(?![ ](?:from|to|by|\d))(?!\w))",
    re.I,
)
"""After a value: the value is a difference."""
FOREIGN = re.compile(
    r"[ -]?(?:(?:years?|yrs?|y/?o|months?|mos?|weeks?|wks?|days?|hours?|hrs?|min(?:ute)?s?|seconds?"
    r"|mg|mcg|mL|cc|L|liters?|LPM|units?|mEq|times|[ap]\.?m\.?|points?|ago|visits?|percentiles?"
    r"|th|nd|rd|st|doses?|tabs?|tablets?|pillows?)(?![\w])|%)",
    re.I,
)
"""After a number without a unit: the number is no value of a vital sign."""
DELTA = re.compile(
    r"[ ]?(?:by|of|about|approximately|another|an[ ]additional|only|some)?[ ]?[~]?\d+(?:\.\d+)?"
    r"(?:[ ]?(?:-|–|to)[ ]?\d+(?:\.\d+)?)?[ ]?(?:kgs?|kilograms?|lbs?\.?|pounds?|g(?:rams?)?|oz|"
    r"ounces?|cm|in(?:ches)?|%|points?|bpm|beats|degrees?|mm[ ]?Hg|°[ ]?[FC]?|\#)?(?!\w|/)",
    re.I,
)
SIGNED = re.compile(r"[-+–−±]\d")
GOAL_NUMBER = re.compile(r"[ ]*(?:(?:of|is|below|under|less|than|[:<≤=(])[ ]*)+\d", re.I)
GOAL_ANY = re.compile(r"[ ]*(?:(?:of|is|below|under|less|than|[:<≤=(])[ ]*)*\d", re.I)
REPEATED = re.compile(
    r"\.[ ]+(?:(?:and|on|then)[ ])?(?:repeat(?:ed)?|re-?check(?:ed)?|now|later)[ :]+"
    r"(?:was[ ]|at[ ]\S+[ ])?(?=\d)",
    re.I,
)
TIMED = re.compile(
    r"[ ,]*\(?(?:now|today|currently|this[ ](?:morning|afternoon|evening)|later|repeat(?:ed)?"
    r"|(?:on|at|after|by|upon)[ ](?:re-?check|repeat|discharge|arrival|rest|transfer|fluids?"
    r"|treatment|\d))\b",
    re.I,
)
"""The words that give a value behind a semicolon its own time."""
WORDS_BETWEEN = re.compile(r"[A-Za-z][A-Za-z-]*(?:[ ][A-Za-z][A-Za-z-]*){0,3}[ ,:]+", re.I)
"""Words between two values of a form that no other number has (`7/10, after morphine 3/10`)."""
