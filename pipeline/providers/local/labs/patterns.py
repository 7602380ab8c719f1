"""The patterns of one cell of a laboratory row: number, sign, unit, range, flag, text, comment.

Every pattern reads a whole cell as printed. A pattern never reads the first part of a number.
"""

from __future__ import annotations

import re

NUM = (
    r"(?:\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d{1,3}(?:\.\d{3})+,\d+|\d+[.,]\d+|\d+|\.\d+)"
    r"(?![.,]?\d)"
)
SIGN = r"(?:[<>][ ]or[ ]=|[<>]=|=[<>]|[<>≤≥]|(?:less|greater|more)[ ]than(?:[ ]or[ ]equal[ ]to)?)"
TITER = r"1[ ]?:[ ]?\d{1,6}(?![\d:])"
DATE = (
    r"(?:\d{1,2}[/.-]\d{1,2}[/.-]\d{4}|\d{1,2}/\d{1,2}/\d{2}|\d{4}-\d{2}-\d{2}"
    r"|\d{1,2}[ -](?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*[ ,-]{1,2}\d{2,4}"
    r"|(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*\.?[ ]\d{1,2},?[ ]\d{4})(?!\d)"
)
CLOCK = r"\d{1,2}:\d{2}(?::\d{2})?(?:[ ]?[ap]\.?m\.?)?(?![\w:])"
_VOLUME = r"(?:[µuμmnpfdc]?L|mcL|mm(?:3|\^3|³)|cu[ ]?mm|cumm)"
_PER = (
    r"(?:mL/min|dL|mL|uL|µL|μL|mcL|nL|pL|fL|L|kg|g|mg|hrs?|h|24[ ]?h(?:rs?)?|days?|d|min|mmol|mol"
    r"|mm3|hpf|lpf|1\.73[ ]?(?:m2|m²|m\^2|sq\.?[ ]?m)|m2|m²)"
)
_BASE = (
    r"(?:(?:milli|micro|nano|pico)?(?:grams?|moles?|units?)"
    r"|(?:[µuμmnpfk]|mc)?(?:g|mol|mole|Eq|IU|U|kat|Osm(?:ol)?)|(?:m|d|µ|u)?L|cells?"
    r"|(?:log(?:10)?[ ]?)?copies|log(?:10)?[ ]?IU|CFU|EU|E\.U\.|AU|BAU|GPL|MPL|APL|RU|LU)"
)
POWER = (
    rf"(?i:(?:[x×*][ ]?)?10[ ]?(?:(?:\^|\*{{1,2}}|e)?[ ]?\(?(?:12|[369])\)?|[³⁶⁹]|¹²)[ ]?/[ ]?"
    rf"{_VOLUME})"
)
UNIT = (
    rf"(?:{POWER}|(?i:"
    rf"(?:thou(?:s(?:and)?)?|mill?(?:ion)?|bil(?:lion)?|th|[kmgt])/{_VOLUME}|[GT]/L|Mrd/L"
    rf"|cells[ ]?/{_VOLUME}|/[ ]?{_VOLUME}|(?:/|per)[ ]?[hl]pf|mL/min(?:/1\.73[ ]?(?:m2|m²|m\^2"
    rf"|sq\.?[ ]?m))?|mm[ ]?Hg|mm/(?:1(?:st)?[ ]?)?h(?:r|our)?|kPa|cm[ ]?H2O"
    rf"|(?!L[ ])(?:{_BASE})(?:[ ]?/[ ]?{_PER}){{1,3}}"
    r"|(?:%|percent)(?:[ ]of[ ](?:total|hgb|hb))?|m?Osm|g%|mg%|S/CO|secs?\.?|seconds?|ratio|index"
    r"|titers?|units?|copies|arb\.?[ ]units|mEq|mmol|AI|COI|MoM|fL|pg|ng|mcg|mg|mm|°C"
    r"|(?!(?:s/p|w/[ou]|[chry]/o|b/[cl]|d/[ct]|n/[av]|f/u|a/p|i/o)(?!\w))[A-Zµμ]{1,5}/[A-Z]{1,4})"
    r"(?:[ ]?(?i:FEU|DDU|D-DU|creat(?:inine)?|Cr|Hgb|Hb|protein|\(hs\)|\(FEU\)|\(DDU\)|\(IFCC\)"
    r"|IFCC|NGSP|\(NGSP\)|\(calc\)|CaCO3|cells)(?![\w/]))?"
    r"|g|s|U|‰)"
)
ORDINAL = r"(?:[1-4]\+|\+[1-4]|\+{1,4}|\(\+\)|\(-\))"
TEXT = (
    r"(?i:(?:weak(?:ly)?[ ]|strong(?:ly)?[ ]|low[ ])?(?:non-?[ ]?reactive|reactive|positive"
    r"|negative)|not[ ](?:detected|present|isolated|observed|identified)"
    r"|none[ ](?:seen|detected|found|present)|not[ ]seen|undetect(?:ed|able)|detected|TNTC"
    r"|too[ ]numerous[ ]to[ ]count"
    r"|neg|pos|trace|none|few|rare|occasional|moderate|many|numerous|small|large|normal|abnormal"
    r"|yellow|amber|straw|colorless|pale[ ]yellow|dark[ ]yellow|light[ ]yellow|clear|cloudy"
    r"|hazy|sl(?:ightly)?[ ](?:cloudy|hazy)|turbid|immune|non-?immune|equivocal"
    r"|indeterminate|borderline|inconclusive"
    r"|no[ ]growth(?:[ ](?:at|after|x)[ ]\d+[ ](?:days|hours))?|sterile"
    r"|within[ ]normal[ ]limits|WNL|unremarkable|(?:A|B|AB|O)[ ]?(?:positive|negative|pos|neg"
    r"|\+)|present|absent|intact|low|high)"
)
RANGE_TEXT = (
    r"(?i:(?:non-?[ ]?reactive|negative|neg|not[ ]detected|none[ ](?:seen|detected|found|present)"
    r"|not[ ]seen|undetect(?:ed|able)|none|few|rare|trace|normal|absent|clear|(?:pale[ ]|light[ ])?"
    r"(?:yellow|straw|amber)|colorless|no[ ]growth|sterile|immune|occasional|reactive|positive"
    r"|within[ ]normal[ ]limits))"
)
"""Texts that a laboratory prints as the expected result."""
NO_RESULT = (
    r"(?i:(?:see|refer[ ]to)[ ](?:the[ ])?(?:notes?|comments?|below|text|report)(?:[ ][1-9])?"
    r"|comment|TNP|QNS|test[ ]not[ ]performed|not[ ](?:performed|reported|done|available"
    r"|calculated|applicable|established)|(?:unable|unsuitable)[ ]to[ ](?:report|calculate|perform)"
    r"|cancel(?:l?ed)?|quantity[ ]not[ ]sufficient|insufficient|clotted|n/a|---?|—"
    r"|deferred|refused|pending|in[ ]process|to[ ]follow|invalid|rejected|not[ ]tested)"
)
"""A cell that says that there is no result."""
COMMENT = (
    r"(?i:(?:slightly|grossly|mildly|moderately|slight|gross|specimen|sample|serum|plasma)?[ ]?"
    r"(?:h[ae]?emolyz(?:ed|is)|h[ae]?emolysed|lip[ae]?emic|icteric|clotted)(?:[ ](?:specimen"
    r"|sample))?|repeated|repeat|verified|confirmed|rechecked|called|calculated|calc|fasting"
    r"|random|final|preliminary|prelim|corrected|estimated|duplicate|amended|by[ ]repeat"
    r"|adults?|in[ ]progress|whole[ ]blood|serum|plasma|urine|csf|venous|arterial|capillary"
    r"|repeat[ ]requested|today|this[ ]morning"
    r"|(?:finely?[ ]|coarsely?[ ])?(?:speckled|homogeneous|heterogeneous|nucleolar|centromere"
    r"|diffuse)(?:[ ]pattern)?)"
)
FLAG = (
    r"(?:(?:HH|LL|H|L|HI|LO|AA|A|C|N|CH|CL|PH|PL|CRIT|ABN|HIGH|LOW|NORMAL|ABNORMAL|CRITICAL)"
    r"|(?:High|Low|Crit|Critical|Abn|Abnormal|Normal|Elevated|Panic|high|low|critical|abnormal"
    r"|normal|elevated)(?:[ ](?:High|Low|high|low))?|[↑↓▲▼]{1,2})"
)
EARLY_FLAG = r"(?:HH|LL|H|L|HI|LO|HIGH|LOW|High|Low|CRIT|Critical|CRITICAL|[↑↓▲▼]{1,2}|\*{1,2})"
"""A flag that may be printed between the name and the value."""
MISREAD = r"[.,](?!O2\b)[OoQIlSBZ](?![A-Za-z])|[OoQIlSBZ](?![A-Za-z%°/])"
"""A letter that OCR reads in place of a digit: `13.O`, `1O2`. The number is not known then."""
RAISED = "¹²³⁴⁵⁶⁷⁸⁹⁰ᵃᵇᶜᵈᵉᶠᵍʰⁱʲᵏ"
"""Raised figures and letters, which number the notes of a page."""
MARK = (
    rf"(?:\^[a-z1-9]|[@†‡§#^]|\*{{1,3}}|!{{1,2}}|[{RAISED}]{{1,2}}|⁽[{RAISED}]{{1,2}}⁾"
    r"|[a-f](?![\w/]))"
)
"""A footnote's mark directly behind a number."""
BETWEEN = (
    rf"(?:(?<![\w.)])-)?(?:{NUM})(?:[ ]?(?:-|–|—|to)[ ]?|[ ](?:-|–|—|to)[ ]-)(?:{NUM})"
    r"(?![\w/:]*\d)"
)
BOUND = rf"(?:{SIGN}|(?i:up[ ]to))[ ]?(?:{NUM})"
_PERSONS = (
    r"(?:M|F|Males?|Females?|Men|Women|Adults?|Child(?:ren)?|Fasting|Random|Pre|Post"
    r"|Non-?pregnant|Pregnant|Premenopausal|Postmenopausal)"
)
GROUPED = rf"(?:\(?(?i:{_PERSONS})[ ]?[:=]?[ ]?(?:{BETWEEN}|{BOUND})\)?[ ]?[,;/|]?[ ]?){{1,4}}"
"""A reference range for each sex or age."""
RANGE_LABEL = (
    r"(?i:ref(?:erence)?\.?(?:[ ](?:range|interval|value))?s?:?|normal(?:[ ]range)?:|nl:?"
    r"|range:?|expected:?)[ ]*"
)


BLOOD_GROUP = re.compile(
    r"(?:A|B|AB|O)(?:[ ]?Rh(?:\(D\))?)?[ ,]*(?:positive|negative|pos|neg|[+-])(?!\w)", re.I
)
_OF_BLOOD_GROUP = re.compile(r"\b(?:type|abo|group|grouping|rh)\b", re.I)


def is_of_blood_group(name: str) -> bool:
    """Return whether a test gives a blood group, in which `A` is no flag."""
    return _OF_BLOOD_GROUP.search(name) is not None


def printed(words: str | None) -> str | None:
    """Return the words of a cell with single blanks; None if the cell is empty."""
    return " ".join(words.split()) if words else None


def figure(number: str) -> float:
    """Return the size of a printed number without its sign."""
    plain = "".join(c for c in number if c in "0123456789.,")
    parts = plain.split(",")
    if len(parts) > 1 and all(len(p.partition(".")[0]) == 3 for p in parts[1:]):
        plain = plain.replace(",", "")
    elif "," in plain:
        plain = plain.replace(".", "").replace(",", ".")
    try:
        return float(plain)
    except ValueError:
        return -1.0


_POINT = re.compile(r"\d\.(?:\d{1,2}|\d{4,})(?![\d.,])|\d,\d{3}\.\d")
_COMMA = re.compile(r"\d,(?:\d{1,2}|\d{4,})(?![\d.,])|\d\.\d{3},\d")


def decimal_signs(words: str) -> set[str]:
    """Return the decimal signs that printed numbers prove; `1,234` and `1.234` prove none."""
    return {sign for sign, form in ((".", _POINT), (",", _COMMA)) if form.search(words)}


def is_mark_of_footnote(value: str, digit: str, reference: str | None) -> bool:
    """Return whether a digit behind a blank is a footnote's mark, not a part of the value.

    A scanner can split `102` into `10 2`. The range tells: the value alone must be nearer to the
    range than the joined number.
    """
    decimals = re.search(r"[.,](\d+)$", value)
    same = rf"\d[.,]\d{{{len(decimals[1])}}}(?!\d)" if decimals else r"(?!)"
    if re.search(same, reference or ""):
        return True
    bounds = [figure(n) for n in re.findall(r"\d[\d.,]*", reference or "") if figure(n) > 0]
    alone, joined = figure(value), figure(f"{value}{digit}")
    if not bounds or alone < 0:
        return False
    if re.search(r"\d[.,]\d{1,2}(?!\d)", reference or "") and not re.search(r"[.,]", value):
        return False
    return _distance(alone, bounds) < _distance(joined, bounds)


def _distance(number: float, bounds: list[float]) -> float:
    """Return the factor between a number and the nearest bound; 1 inside two bounds."""
    if len(bounds) > 1 and min(bounds) <= number <= max(bounds):
        return 1.0
    return min(max(number, bound) / max(min(number, bound), 1e-9) for bound in bounds)
