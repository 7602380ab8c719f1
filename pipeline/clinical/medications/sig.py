"""The parts of a prescription: amounts, routes, frequencies, durations and the words between.

Each pattern matches at a place of the text. `prescription_steps` joins the parts to doses.
"""

from __future__ import annotations

import re
from enum import Enum, auto

_WORD_NUMBER = r"(?:one[- ]half|half|one|two|three|four|five|six|seven|eight|nine|ten)"
_NUMBER = (
    r"(?:\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+[ ]?½|\d+[ ](?:and[ ])?1/2|1/[234]|\d+(?:\.\d+)?|\.\d+|½|¼"
    rf"|{_WORD_NUMBER})(?:[ ]\((?:{_WORD_NUMBER}|\d{{1,2}})\))?"
)
_COUNTED = (
    r"(?:puffs?|tab(?:let)?s?|cap(?:sule)?s?|caplets?|drops?|gtts?|sprays?|patch(?:es)?"
    r"|lozenges?|suppositor(?:y|ies)"
    r"|amp(?:ule)?s?|vials?|packets?|scoops?|applications?|inhalations?|tsps?|teaspoons?(?:ful)?"
    r"|tbsps?|tablespoons?(?:ful)?|doses?|pills?|inhs?|sachets?|bag|nebs?|films?|gumm(?:y|ies)"
    r"|capfuls?|pumps?)"
)
_MASS = r"(?:mg|mcg|µg|μg|ug|g|units?|mEq|mmol|mL)"
_UNIT = (
    rf"(?:{_MASS}/(?:kg|m2|m²)(?:/(?:day|dose|hr?|min|d))?"
    r"|(?:mg|mcg|µg|μg|ug|g|units?|mEq|mL|cc|mL|L)/(?:hr?|hour|min|day|actuation|act|dose|puff"
    r"|24[ ]?h(?:rs?|ours?)?|spray|inhalation|tab(?:let)?|cap(?:sule)?|mL|\d*(?:\.\d+)?\s?mL)"
    r"|(?:mg|mcg|g|units?|mEq)[ ]per[ ](?:mL|\d+(?:\.\d+)?[ ]?mL|hour|actuation|puff|tablet)"
    r"|mgs?|milligrams?|mcgs?|micrograms?|µg|μg|ug|grams?|gms?|g|mL|mls?|ccs?|cc|liters?|lpm|L"
    r"|(?:international[ ])?units?|U|IU|mEqs?|mmol|%"
    rf"|{_COUNTED})"
)
DOSE = re.compile(
    r"(?<![\w/.])("
    rf"(?:one[- ])?half[ ](?:of[ ])?(?:an?|one|the)?[ ]?{_COUNTED}"
    rf"|(?:a[ ]|one[- ])?quarter[ ](?:of[ ])?(?:a|one)?[ ]?{_COUNTED}"
    rf"|(?:\d|one|two|three)[ ]and[ ](?:a[ ]|one[- ])?half[ ]{_COUNTED}"
    rf"|(?:an?|one)[ ](?:full|whole|single)[ ]{_COUNTED}"
    rf"|{_NUMBER}(?:[ ]?(?:-|–|/|to)[ ]?{_NUMBER})*(?:[ ]"
    rf"|-)?{_UNIT}(?:[ ]?/[ ]?\d*(?:\.\d+)?[ ]?(?:mL|ml))?)(?![\w/])",
    re.I,
)
"""An amount with its unit: `20 mg`, `875/125 mg`, `0.5-1 mg`, `1,000 units`, `two puffs`."""


class Amount(Enum):
    """The kind of an amount."""

    MASS = auto()
    VOLUME = auto()
    COUNT = auto()
    CONTENT = auto()
    """What a unit of the product contains: `160 mg/5 mL`, `110 mcg/actuation`, `1%`."""


_CONTENT = re.compile(
    r"%$|(?:(?<=[a-zµμ])/|[ ]per[ ])[ ]?\d*(?:\.\d+)?[ ]?"
    r"(?:mL|actuation|act|puff|spray|inhalation|tab(?:let)?|cap(?:sule)?)$",
    re.I,
)
_IS_COUNT = re.compile(rf"{_COUNTED}$", re.I)
_IS_VOLUME = re.compile(r"(?:mls?|ccs?|liters?|(?<![a-z])L)$", re.I)


def kind_of(amount: str) -> Amount:
    """Classify an amount by its unit."""
    if _CONTENT.search(amount):
        return Amount.CONTENT
    if _IS_COUNT.search(amount):
        return Amount.COUNT
    return Amount.VOLUME if _IS_VOLUME.search(amount) else Amount.MASS


COMPOSED = re.compile(
    rf"(?<![\w/.])(?:{_NUMBER}[ ](?:x[ ])?)\d[\d.,]*[ ]?(?:mg|mcg|g)[ -]"
    r"(?:tab(?:let)?s?|cap(?:sule)?s?|patch(?:es)?)(?!\w)"
    rf"|(?<![\w/.]){_NUMBER}[ ]?(?:x|×)[ ]?\d[\d.,]*[ ]?(?:mg|mcg|g)(?![\w/])",
    re.I,
)
"""A dose by its pieces: `two 20 mg tablets`."""
ROUTE = re.compile(
    r"(?<!\w)(?:PO|p\.o\.|by[ ]mouth|orally|oral|IV[ ]?(?:PB|push|drip|infusion|bolus)?|I\.V\."
    r"|IVP|intravenous(?:ly)?"
    r"|IM|I\.M\.|intramuscular(?:ly)?|SC|SQ|sub-?Q|sub-?cut(?:aneous(?:ly)?)?|s\.c\.|SL"
    r"|sublingual(?:ly)?|under[ ]the[ ](?:tongue|skin)|on[ ]the[ ]skin|to[ ](?:the[ ])?skin"
    r"|PR|per[ ]rectum|rectally|PV|vaginally|per[ ]vagina|topical(?:ly)?"
    r"|(?:applied[ ])?to[ ](?:the[ ])?(?:affected[ ](?:areas?|skin)|rash|lesions?|wounds?"
    r"|face|scalp|arms?|legs?|hands?|feet|groin|back)"
    r"|inhaled|inhalation|by[ ]inhalation|INH|(?:via|by|per|in)[ ](?:a[ ])?neb(?:ulizer)?"
    r"|nebulized|nebs?|intranasal(?:ly)?"
    r"|in[ ]each[ ]nostril|each[ ]nostril|ophthalmic(?:ally)?|in(?:to)?[ ](?:both|each|the[ ]left"
    r"|the[ ]right|left|right|affected)[ ]eyes?|both[ ]eyes|each[ ]eye"
    r"|OU|OS|in[ ](?:both|each|the[ ]left|the[ ]right)[ ]ears?|otic|transdermal(?:ly)?"
    r"|buccal(?:ly)?"
    r"|(?:per|via|by)[ ](?:G|J|NG|PEG|OG)-?[ ]?tube|NGT?|via[ ]nasal[ ]cannula"
    r"|by[ ]nasal[ ]cannula|nasal[ ]cannula|intrathecal(?:ly)?"
    r"|intradermal(?:ly)?|swish[ ]and[ ](?:swallow|spit)|intraarticular(?:ly)?"
    r"|intravitreal(?:ly)?)(?!\w)",
    re.I,
)
RIGHT_EYE = re.compile(r"OD(?!\w)")
_DAY = r"(?:mon|tues|wednes|thurs|fri|satur|sun)day"
_WEEKDAY = rf"(?:{_DAY}s?|(?:mon|tues?|wed|thur?s?|fri|sat|sun)(?!\w)\.?)"
_WEEKDAYS = rf"{_WEEKDAY}(?:(?:,?[ ]?(?:and|&)[ ]|,[ ]|[ ]?/[ ]?){_WEEKDAY})*"
_COUNT = r"(?:\d+(?:[ ]?(?:-|–|to)[ ]?\d+)?|two|three|four|five|six|seven|eight|ten|twelve|few)"
_MEAL = r"(?:meals?|food|breakfast|lunch|dinner|supper|each[ ]meal|milk|water|the[ ]evening[ ]meal)"
FREQUENCY = re.compile(
    r"(?<![\w-])(?:q\.(?:d|h\.s|o\.d|a\.m|p\.m)\.(?=[ ,;)\n-]|$)|"
    r"(?:\d|½)(?:\.5)?-(?:\d|½)(?:\.5)?-(?:\d|½)(?:\.5)?(?:-(?:\d|½))?(?![-/\d])"
    r"|(?:once|twice|thrice|(?:one|two|three|four|five|six|\d)[ ]?"
    r"(?:(?:-|–|to)[ ]?(?:\d|two|three|four|five|six)[ ]?)?(?:times|x"
    r"|×))[ ]?(?:(?:a|per|each|every)[ ](?:day|week|month|night)|daily|nightly|weekly|monthly"
    r"|/[ ]?(?:day|week|wk))"
    rf"|every[ ](?:other[ ])?(?:{_COUNT}[ ]?-?)?(?:hours?|hrs?|h(?!\w)|minutes?|mins?|days?|weeks?"
    r"|wks?|months?|mornings?|afternoons?|evenings?|nights?|bedtime|am(?!\w)|pm(?!\w)"
    rf"|(?:second|third|2nd|3rd)[ ]days?|{_WEEKDAYS})"
    r"|(?:\d|two|three|four|five|six)[ ]days[ ](?:a|per|each)[ ]week"
    r"|(?:on[ ])?alternat(?:e|ing)[ ]days"
    r"|q\.?[ ]?\d{1,2}(?:[ ]?(?:-|–|to)[ ]?\d{1,2})?[ ]?(?:hours?|hourly|hrs?|h|minutes?|mins?"
    r"|days?|d|weeks?|wks?|w|months?)?"
    r"|q\.?[ ]?(?:a\.m\.|p\.m\.|h\.s\.|am|pm|hs|day|daily|week|weekly|wk|month|monthly|shift"
    r"|other[ ]day|o\.d\.|od|d|h|noon|ac|mon|evening|morning|night)"
    r"|b\.i\.d\.|t\.i\.d\.|q\.i\.d\.|o\.d\.|b\.d\.|t\.d\.s\.|q\.d\.s\.|bid|tid|qid|QD|QHS|QAM|QPM"
    r"|QOD|QDAY|(?-i:OD|BD|TDS|QDS|OM|ON|TIW|MWF|TTS|SOS)|b\.?i\.?w\.?(?!\w)|mane|nocte"
    r"|once[ ](?:daily|nightly|weekly|monthly|only)|daily|nightly|weekly|fortnightly|biweekly"
    r"|monthly|hourly|yearly"
    r"|(?:at[ ])?(?:bedtime|midday|noon|lunchtime|teatime)"
    r"|at[ ](?:night|supper|dinner|breakfast|lunch|\d{1,2}(?::\d\d)?[ ]?(?:am|pm|a\.m\.|p\.m\.))"
    r"|\d{1,2}[ ]?(?:am|pm)(?!\w)"
    r"|in[ ](?:the[ ])?(?:mornings?|evenings?|afternoons?|am(?!\w)|pm(?!\w))"
    r"|(?:the|next)[ ](?:morning|evening)"
    r"|before[ ]bed(?:time)?|each[ ](?:morning|evening|night|day)|(?-i:morning|evening|night)"
    rf"|(?:with|before|after)[ ]{_MEAL}(?:[ ]and[ ](?:dinner|supper|lunch|bedtime))?"
    r"|AC(?:[ ]&[ ]HS)?|(?-i:PC)|HS|AM|PM"
    r"|as[ ](?:needed|required)|if[ ](?:needed|required)|when[ ](?:needed|required)|p\.r\.n\.|prn"
    r"|(?:per|a|/)[ ]?(?:day|week|month)"
    r"|once(?![ ](?:labs?|results?|the|he|she|they|patient|pain|able|stable|cleared|approved"
    r"|biopsy)\b"
    r"|[ ]\w+[ ](?:is|are|returns?|has|have|clears?|improves?|resolves?)\b)|continuous(?:ly)?"
    r"|x[ ]?1(?![ ]?\w|[ ]?[./-]\d)"
    r"|×[ ]?1(?![ ]?\w)|stat|ad[ ]lib"
    rf"|(?:only[ ])?(?:on[ ])?{_WEEKDAY}[ ]?(?:-|–|to|through|thru)[ ]?{_WEEKDAY}(?!\w)"
    r"|(?:on[ ])?(?:the[ ])?week(?:ends?|days?)(?!\w)"
    rf"|(?:only[ ])?on[ ]{_WEEKDAYS}|{_WEEKDAYS}(?!\w)"
    r"|(?:on[ ])?(?:the[ ]|all[ ](?:the[ ])?|all[ ])?other[ ]days(?:[ ]of[ ]the[ ]week)?"
    r"|(?:on[ ])?(?:the[ ])?(?:rest|remainder)[ ]of[ ]the[ ]week"
    r"|(?:on[ ])?(?:the[ ])?(?:remaining|odd|even|dialysis|non-dialysis)[ ]days"
    rf"|except(?:[ ]on)?[ ]{_WEEKDAYS}"
    r"|(?-i:(?:M|Tu|T|W|Th|F|Sa|Su|S)(?:[ ]?[,/][ ]?(?:M|Tu|T|W|Th|F|Sa|Su|S))+)"
    r")(?![\w])",
    re.I,
)
_LENGTH = (
    r"(?:\d+(?:[ ]?(?:-|–|to)[ ]?\d+)?|an?|one|two|three|four|five|six|seven|ten|fourteen|several)"
)
BARE_COUNT = re.compile(
    r"(?<!\w)[x×][ ]?(?:[2-9]|1[0-2])(?=[ ]*(?:[,;.)]|prn\b|as[ ]needed|for[ ](?!\d)|max\b|$))",
    re.I,
)
"""A number without its unit: doses beside an interval (`q5min x3`), otherwise days or doses."""
DURATION = re.compile(
    r"(?<!\w)(?:"
    rf"(?:for|x|×|during|over)[ ]?(?:(?:a[ ]total[ ]of|the[ ](?:first|next|following)|another)[ ])?"
    rf"{_LENGTH}[ ]?-?(?:(?:more|additional|full)[ ])?"
    r"(?:days?|d|nights?|weeks?|wks?|months?|mos?|years?|doses|hours?|hrs?|minutes?|mins?|cycles?)"
    rf"|{BARE_COUNT.pattern}"
    r"|(?:on[ ])?day[ ]\d+(?:[ ]of[ ]|[ ]?/[ ]?)\d+(?:[ ]days)?"
    r"|(?:on[ ])?(?:days?|weeks?)[ ]\d+(?:[ ]?(?:-|–|to|and|through)[ ]?\d+)?"
    r"|until[ ](?:off|finished|gone|completed?|done)"
    rf"|{_LENGTH}(?:[ ]|-)(?:days?|weeks?|months?)(?![ ](?:a|per|each)[ ]week)"
    r"(?:[ ](?:course|taper|supply))?"
    r")(?!\w)",
    re.I,
)
"""How long a step lasts: `for 3 days`, `x 2 days`, `days 1-3`."""
SUPPLY = re.compile(
    r"(?:disp(?:ense)?|qty|quantity|supply|count)[ ]?[:#]?[ ]?#?\d+(?:[ ](?:tab(?:let)?s?"
    r"|cap(?:sule)?s?|mL))?"
    r"|\d[\d,.]*[ ]?(?:mg|mcg|g|units|mL)(?:[ ]?/[ ]?(?:day|24[ ]?h(?:rs?|ours?)?)|[ ]total"
    r"(?:[ ](?:daily|per[ ]day|dose|daily[ ]dose))?|[ ](?:total[ ])?per[ ]day|[ ]a[ ]day)(?=\))"
    r"|\d+[ ](?:tab(?:let)?s?|cap(?:sule)?s?)[ ]of[ ]\d[\d.]*[ ]?(?:mg|mcg)(?=\))"
    r"|#[ ]?\d+(?!\w)|(?:no[ ]|\d+[ ]|zero[ ])refills?|refills?[ ]?[:x]?[ ]?\d+"
    r"|in[ ]\d+[ ]?(?:mL|cc)(?:[ ](?:of[ ])?(?:NS|D5W|normal[ ]saline|saline|water"
    r"|sterile[ ]water))?"
    r"|(?:with|in)[ ](?:\d+[ ](?:oz|ounces)|a[ ]glass)(?:[ ]of[ ](?:water|juice))?",
    re.I,
)
"""What is dispensed, and what the drug is diluted in: no doses."""
BETWEEN = re.compile(
    r"(?:XL|ER|SR|CR|XR|DR|EC|LA|CD|ODT|HFA|DS|IR|extended[- ]release|delayed[- ]release"
    r"|immediate[- ]release|enteric[- ]coated"
    r"|chewable|inhaler|nebulizer|solution|suspension|ointment|cream|gel|lotion|foam"
    r"|nasal[ ]spray|tab(?:let)?s?|cap(?:sule)?s?|caplets?"
    r"|injection|injections|patch(?:es)?|drip|infusion|bolus|powder|syrup|elixir|liquid|pen|flexpen"
    r"|solostar|kwikpen|packet|spray|drops|vial|(?:pre-?filled[ ])?syringes?|auto-?injector"
    r"|cartridge|ampoules?|ampules?|MDI|DPI|diskus|respimat|ellipta|turbuhaler|nebules?"
    r"|metered[ ]dose|inhalers?|(?:eye|ear)[ ]drops|soln|susp|oint|disintegrating|coated"
    r"|film-coated|prefilled"
    r"|to|of|at|a|an|take|takes|taking|took|taken|dose|dosed|dosing|given|gave|giving|give|use|uses"
    r"|apply|inject|injects|instill|place|swallow|chew|dissolve|insert|wear"
    r"|inhale|contents|increased|decreased|reduced|increase|decrease|changed|raised|lowered|by"
    r"|in|the|total|for[ ]total"
    r"|strength|sig|level|therapy|on|mg|taper|course|is|was|should[ ]be|be|started|continued"
    r"|only|about|approximately|current|currently|now|loading|maintenance|initial|starting)(?!\w)",
    re.I,
)
_PRODUCTS = (
    r"tab(?:let)?s?|cap(?:sule)?s?|caplets?|patch(?:es)?|inhalers?|(?:pre-?filled[ ])?syringes?"
    r"|auto-?injector|cartridge|ampoules?|ampules?|MDI|DPI|diskus|respimat|ellipta|turbuhaler"
    r"|nebules?|suspension|solution|syrup|elixir"
    r"|liquid|vial|pen|flexpen|solostar|kwikpen|injection|nebulizer|drops|spray|strength|ODT"
    r"|chewable|packet"
)
PRODUCT = re.compile(rf"(?:{_PRODUCTS})(?!\w)", re.I)
"""A form of a product: an amount before this word is a strength if another amount follows."""
GAP = re.compile(
    r"(?:[ \n\t,;:()\[\]@|_+*~—–]|\.(?=\s|$)|-(?!-*>)|=(?!=*>)|(?<= )[^\x00-\x7f→½](?= ))*"
)
_SALT = re.compile(
    r"[ \n]+(succ(?:inate)?|tart(?:rate)?|HCl|hydrochloride|sodium|potassium|besylate|maleate"
    r"|mesylate"
    r"|fumarate|citrate|sulfate|phosphate|acetate|bromide|calcium|magnesium|carbonate"
    r"|gluconate|propionate|furoate|valerate|malate|hyclate|pamoate|decanoate|mesilate"
    r"|disoproxil|medoxomil|cilexetil|monohydrate)(?![\w/])",
    re.I,
)
_DOSE_BEFORE = re.compile(DOSE.pattern + r"[ \n]+(?:of[ \n]+)?$", re.I)


def salt_end(text: str, end: int, limit: int) -> int:
    """Return where a drug's name ends if its salt is part of the name (`metoprolol succinate`)."""
    m = _SALT.match(text, end, limit)
    return m.end() if m else end


def dose_before(text: str, start: int, floor: int) -> tuple[int, str] | None:
    """Return the start of a dose before the name (`20 mg of lisinopril`), and the dose."""
    m = _DOSE_BEFORE.search(text, max(floor, start - 30), start)
    if m is None or m[1].lower().endswith(("dose", "doses")):
        return None
    return m.start(1), printed(m[1]) or ""


def printed(words: str | None) -> str | None:
    """Return words with one blank in place of each run of white space."""
    return " ".join(words.split()) if words else None
