"""The vital signs: their names, the forms of their values, their units and plausible bounds.

The patterns are generous in form. A value that no living body can show is never plausible.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

_TO = r"[ ]?(?:-|–|to)[ ]?"
_NEAR = r"(?:(?:low|mid|high|upper)[ -])?"
_MISREAD = r"[.,](?!O2\b)[OoQIlSBZ](?![A-Za-z])"
"""A letter that OCR reads in place of a digit: `98.O`."""
_END = rf"(?![A-Za-z0-9_°%+*/?]|[.,:;][0-9]|{_MISREAD}|[ ]?[-–][ ]?[0-9]|[ ]?/[ ]?[0-9])"
_UNIT_END = rf"(?![A-Za-z0-9_°%+*?]|[.,:;][0-9]|{_MISREAD}|[ ]?[-–][ ]?[0-9])"
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_OWN_WEIGHT = (
    r"(?:(?:estimated[ ])?dry|(?:predicted|ideal|adjusted|lean|usual|estimated|reported|stated"
    r"|actual|current|measured|total)(?:[ ]body)?|estimated[ ]fetal|fetal|birth|admit|admission"
    r"|discharge|daily|body|highest|lowest|max(?:imum)?|peak|lifetime|dosing|today['’]s"
    r"|pre-?pregnan(?:cy|t)|pre-?pregravid|(?:pre|post)"
    r"-?[ ]?(?:dialysis|HD|op(?:erative)?)|bed|standing)"
)


_NOT_BODY = "".join(
    rf"(?<!{word}[ ])"
    for word in ("fundal", "fundus", "uterine", "chair", "bed", "seat", "step", "cane", "walker")
)
"""Heights of something else than the body."""
_SYSTEMS: dict[str, tuple[tuple[str, float], ...]] = {
    "Temp": ((r"C|celsius", 1.0), (r"F|fahrenheit", 0.0)),
    "weight": (
        (r"kg|kilo", 1.0),
        (r"lb|pound|#", 0.45359237),
        (r"oz|ounce", 0.0283495),
        (r"g", 0.001),
    ),
    "height": ((r"cm", 1.0), (r"in|\"|”|″", 2.54), (r"ft|feet|foot", 30.48), (r"m", 100.0)),
    "head circumference": ((r"cm", 1.0), (r"in", 2.54)),
}


@dataclass(frozen=True, slots=True)
class Vital:
    """The spellings, units and plausible values of one vital sign."""

    key: str
    names: str
    value: str
    """One value, without its unit."""
    unit: str
    low: float
    high: float
    letter: str = ""
    """A single letter that means this vital sign only beside other vital signs."""
    composite: str = r"(?!)"
    """A value of several units (`7 lb 4 oz`), which contains its units."""
    reading: re.Pattern[str] = field(init=False, repr=False)
    """A value or a range, with its unit."""
    one: re.Pattern[str] = field(init=False, repr=False)
    """A single value with its unit."""
    first: re.Pattern[str] = field(init=False, repr=False)
    """The first value of a range."""

    def __post_init__(self) -> None:
        """Compile the patterns."""
        # A unit separates `38.5 C/101.3 F`; without a unit a slash makes another value.
        ends = _UNIT_END if self.own_unit else _END
        unit = rf"(?:[ ]?(?P<unit>{self.unit}){ends}|{_END})"
        single = rf"(?P<composite>{self.composite})|(?P<value>(?:{self.value}))"
        part = rf"(?:{self.value})(?:[ ]?(?:{self.unit}))?"
        ranged = (
            rf"(?P<range>{part}{_TO}(?:{self.value})|between[ ]{part}[ ]and[ ](?:{self.value}))"
        )
        one = re.compile(rf"(?:{single}){unit}", re.I)
        object.__setattr__(self, "one", one)
        object.__setattr__(
            self, "first", re.compile(rf"(?:{single})(?:[ ]?(?P<unit>{self.unit}))?", re.I)
        )
        reading = re.compile(rf"(?:{ranged}|{single}){unit}", re.I)
        object.__setattr__(self, "reading", reading)

    @property
    def pattern(self) -> str:
        """All names as one expression; the letter counts only in upper case."""
        return f"{self.names}|(?-i:{self.letter})(?!\\d)" if self.letter else self.names

    @property
    def own_unit(self) -> bool:
        """Return whether the vital sign is a length, a mass or a temperature."""
        return self.key in _SYSTEMS


_INT = rf"{_NEAR}\d{{2,3}}(?:['’]?s(?!\w))?"
_DECIMAL = r"\d{1,3}(?:\.\d{1,2})?"
_PAIR = r"\d{2,3}s?[ ]?/[ ]?(?:\d{2,3}s?|palp\w*|doppler|P(?!\w)|D(?!\w))"
_SPAN = r"\(?\d{2,3}s?[ ]?[-–][ ]?\d{2,3}s?\)?"
_LB = r"(?:lbs?\.?|pounds?|\#)"
_OZ = r"(?:ozs?(?!\w)|ounces?)"
_FRACTION = r"(?:[ ][1-7]/[2-8]|[ ]?[½¼¾])?"
_INCH = r"(?:in(?:ch(?:es)?)?(?![a-z])|[\"”″]|''|’’)"
VITALS: tuple[Vital, ...] = (
    Vital(
        "BP",
        (
            r"(?:(?:orthostatic|home|sitting|standing|supine|manual|clinic|office|arterial"
            r"|cuff)[ ])?(?:blood[ ]pressures?|B/?Ps?|ABP|NIBP)(?:[ ]?-?[ ]?[RL](?![\w]))?"
        ),
        rf"{_SPAN}[ ]?/[ ]?(?:{_SPAN}|\d{{2,3}}s?)|\d{{2,3}}[ ]over[ ]\d{{2,3}}|{_PAIR}",
        r"mm[ ]?Hg",
        40,
        300,
    ),
    Vital(
        "HR",
        (
            r"(?:fetal[ ])?heart[ ]rates?|HR|pulse[ ]rate|pulses?(?![ ]ox)"
            r"|apical[ ]pulse|ventricular[ ]rate"
        ),
        _INT,
        r"bpm|beats?[ ](?:per|a)[ ]minute|beats/min(?:ute)?|/[ ]?min(?:ute)?|per[ ]minute",
        20,
        300,
        "P",
    ),
    Vital(
        "RR",
        r"respiratory[ ]rate|respirations?|resp(?:(?:\.?[ ]|\.)?rate|s)?\.?|RR",
        r"\d{1,2}(?:['’]?s(?!\w))?",
        (
            r"bpm|breaths?[ ](?:per|a)[ ]minute|breaths/min(?:ute)?|br/min|/[ ]?min(?:ute)?"
            r"|per[ ]minute"
        ),
        4,
        90,
        "R",
    ),
    Vital(
        "Temp",
        (
            r"temperature|temp\.?|T[ -]?max|Tm|Tc(?:urrent)?|tympanic[ ]temp(?:erature)?"
            r"|oral[ ]temp(?:erature)?|rectal[ ]temp(?:erature)?|axillary[ ]temp(?:erature)?"
        ),
        r"\d{2,3}(?:\.\d{1,2})?",
        (
            r"°[ ]?[FC](?![a-z])|º[ ]?[FC](?![a-z])|deg(?:rees?)?(?:[ ](?:F(?:ahrenheit)?"
            r"|C(?:elsius)?))?(?![a-z])|[FC](?![\w])|oF|°|º"
        ),
        25,
        112,
        "T",
    ),
    Vital(
        "SpO2",
        (
            r"SpO2|SaO2(?=[: ])|O2[ ]?sats?(?:uration)?|oxygen[ ]sat(?:uration)?s?|O2[ ]?%|sats?"
            r"|pulse[ ]ox(?:imetry)?|POx|sat(?:uration)?s?(?=[: ])"
        ),
        rf"{_NEAR}\d{{2,3}}(?:['’]?s(?!\w))?",
        r"%|percent",
        30,
        100,
    ),
    Vital(
        "weight",
        rf"(?:{_OWN_WEIGHT}[ ])?(?:weight|wt\.?)|E?DW(?=[ :]+\d)|IBW|PBW|EFW|BW(?=[ :]+\d)",
        rf"\d{{1,3}}(?:,\d{{3}})?(?:\.\d{{1,3}})?{_FRACTION}|\d{{4}}(?=[ ]?g)",
        (
            r"kgs?|kilo(?:gram)?s?|lbs?|pounds?|\#|g(?:ra)?ms?(?![a-z])|g(?![a-z/])"
            r"|ozs?|ounces?"
        ),
        0.2,
        1500,
        composite=(
            rf"\d{{1,3}}[ ]?{_LB},?[ ]?(?:and[ ])?\d{{1,2}}(?:\.\d{{1,2}})?{_FRACTION}[ ]?{_OZ}"
            rf"|\d{{1,2}}[ ]?(?:st|stone)[ ]?\d{{1,2}}[ ]?{_LB}"
        ),
    ),
    Vital(
        "height",
        rf"(?:(?:mid-?parental|estimated|stated|reported|adult)[ ])?{_NOT_BODY}height|ht\.?"
        r"|body[ ]length",
        rf"\d{{1,3}}(?:\.\d{{1,3}})?{_FRACTION}",
        r"cm|in(?:ch(?:es)?)?(?![a-z])|[\"”″]|met(?:er|re)s?|m(?![a-z/])|ft|feet|foot",
        0.3,
        272,
        composite=(
            rf"\d['’′][ ]?\d{{1,2}}(?:\.\d{{1,2}})?{_FRACTION}(?:[ ]?{_INCH})?"
            rf"|\d[ ]?(?:ft|feet|foot)\.?,?[ ]?(?:and[ ])?\d{{1,2}}(?:\.\d{{1,2}})?{_FRACTION}"
            rf"[ ]?{_INCH}|\d['’′]"
        ),
    ),
    Vital("BMI", r"BMI|body[ ]mass[ ]index", _DECIMAL, r"kg/m(?:2|²|\^2)|kg/sq\.?[ ]?m", 7, 120),
    Vital(
        "pain",
        r"pain(?:[ ](?:score|level|scale|rating|intensity))?",
        (
            r"\d{1,2}(?:[-–]\d{1,2})?[ ]?/[ ]?10(?!\d)|\d{1,2}[ ]out[ ]of[ ]10"
            r"|\d{1,2}(?![\d./%])"
        ),
        r"(?!)",
        0,
        10,
    ),
    Vital("head circumference", r"head[ ]circumference|HC|OFC", _DECIMAL, r"cm|in", 15, 80),
    Vital("MAP", r"MAP|mean[ ]arterial[ ]pressure", _INT, r"mm[ ]?Hg", 20, 220),
    Vital("FiO2", r"FiO2", r"\d{2,3}|0?\.\d{1,2}", r"%", 0.2, 100),
    Vital(
        "SBP",
        r"(?-i:SBP)s?|systolic(?:[ ](?:BP|blood[ ]pressure|pressure))?(?=[ :]+\d)",
        _INT,
        r"mm[ ]?Hg",
        40,
        300,
    ),
    Vital(
        "DBP",
        r"(?-i:DBP)s?|diastolic(?:[ ](?:BP|blood[ ]pressure|pressure))?(?=[ :]+\d)",
        _INT,
        r"mm[ ]?Hg",
        20,
        200,
    ),
)
BP, SPO2 = VITALS[0], VITALS[4]
NAMES = re.compile(
    r"(?<![\w/])(?P<name>"
    + "|".join(f"(?P<v{i}>{vital.pattern})" for i, vital in enumerate(VITALS))
    + r")(?![A-Za-z_])(?![-/][A-Za-z])",
    re.I,
)
NO_BODY = re.compile(
    r"(?:molecular|placenta[l]?|specimen|uterine|uterus|tumou?r|spleen|heart|lean|atomic"
    r"|birth[ ]of)"
    r"[ ]$",
    re.I,
)
"""The word before a name that makes the name another thing."""
_MASS = {"kg": (0.2, 600.0), "lb": (0.5, 1400.0), "oz": (8.0, 20_000.0), "g": (200.0, 600_000.0)}
_TEMP = {"C": (25.0, 46.0), "F": (77.0, 115.0)}
_LENGTH = {"cm": (15.0, 272.0), "in": (6.0, 108.0), "ft": (1.0, 9.0), "m": (0.3, 2.72)}


def vital_of(m: re.Match[str]) -> Vital:
    """Return the vital sign that a match of `NAMES` names."""
    return next(vital for i, vital in enumerate(VITALS) if m[f"v{i}"])


def unit_key(vital: Vital, unit: str | None) -> str:
    """Return the plain spelling of a unit; "" for none and for a bare degree sign."""
    words = re.sub(r"°|º|deg(?:rees?)?|[. ]", "", unit or "", flags=re.I)
    if vital.key == "Temp":
        return words[:1].upper() if words[:1].upper() in _TEMP else ("F" if words == "oF" else "")
    for pattern, _ in _SYSTEMS.get(vital.key, ()):
        if words and re.match(pattern, words, re.I):
            return re.split(r"\||\\", pattern)[0]
    return ""


def system(vital: Vital, value: str, unit: str | None) -> str:
    """Return `metric`, `us`, or "" if the value has no unit that tells them apart."""
    key = unit_key(vital, unit)
    if vital.own_unit and not key and re.search(r"lb|pound|oz|ft|feet|foot|['’′\"]", value, re.I):
        return "us"
    if not key:
        return ""
    return "metric" if key in ("C", "kg", "g", "cm", "m") else "us"


def base_amount(vital: Vital, value: str, unit: str | None) -> float | None:
    """Return a length in cm, a mass in kg, a temperature in °C; None if the unit is unknown."""
    numbers = [float(n) for n in _NUMBER.findall(value.replace(",", ""))]
    if not numbers:
        return None
    if re.search(r"\d/\d", value) and len(numbers) >= 3 and numbers[-1]:
        numbers[-3:] = [numbers[-3] + numbers[-2] / numbers[-1]]
    factors = dict(_factors(vital))
    key = unit_key(vital, unit)
    if vital.key == "Temp":
        return {"C": numbers[0], "F": (numbers[0] - 32) / 1.8}.get(key)
    if key:
        return numbers[0] * factors[key]
    if len(numbers) == 2 and vital.key == "weight":
        return numbers[0] * factors["lb"] + numbers[1] * factors["oz"]
    if len(numbers) == 2 and vital.key == "height":
        return numbers[0] * factors["ft"] + numbers[1] * factors["in"]
    return None


def _factors(vital: Vital) -> list[tuple[str, float]]:
    return [(re.split(r"\||\\", p)[0], f) for p, f in _SYSTEMS.get(vital.key, ())]


def plausible(vital: Vital, value: str, unit: str | None = None) -> bool:
    """Return whether a living body can show `value`."""
    plain = value.replace(",", "").replace(" over ", "/")
    numbers = [float(n) for n in _NUMBER.findall(plain)]
    if not numbers:
        return False
    if vital.key == "BP":
        return _plausible_pressure(plain, numbers)
    if vital.key == "pain":
        return all(n <= vital.high for n in numbers)
    if re.search(r"[A-Za-z'’′]", re.sub(r"\bto\b|low|mid|high|upper|s\b", "", plain)):
        return True
    key = unit_key(vital, unit)
    low, high = (_MASS | _TEMP | _LENGTH if vital.own_unit else {}).get(
        key, (vital.low, vital.high)
    )
    first = numbers if not re.search(r"\d/\d", plain) else numbers[:1]
    if not all(low <= n <= high for n in first):
        return False
    return not (vital.key == "Temp" and any(46 < n < 80 for n in numbers))


def _plausible_pressure(plain: str, numbers: list[float]) -> bool:
    if not all(10 <= n <= 300 for n in numbers) or numbers[0] < 40:
        return False
    halves = [[float(n) for n in _NUMBER.findall(half)] for half in plain.split("/")]
    if len(halves) == 3:
        return len(numbers) == 4 and numbers[0] > numbers[1] and numbers[2] > numbers[3]
    if len(halves) != 2 or not halves[0]:
        return False
    upper, lower = halves
    return not lower or (min(upper) > min(lower) and max(upper) > max(lower))
