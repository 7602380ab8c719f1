"""The patterns of one cell of a laboratory row: number, sign, unit, range, flag, text, comment.

Every pattern reads a whole cell as printed. A pattern never reads the first part of a number.
"""

from __future__ import annotations

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
    rf"|{_BASE}(?:[ ]?/[ ]?{_PER}){{1,3}}"
    r"|(?:%|percent)(?:[ ]of[ ](?:total|hgb|hb))?|m?Osm|g%|mg%|S/CO|secs?\.?|seconds?|ratio|index"
    r"|titers?|units?|copies|arb\.?[ ]units|mEq|mmol|AI|COI|MoM|fL|pg|ng|mcg|mg|mm|°C"
    r"|[A-Zµμ]{1,5}/[A-Z]{1,4})"
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
    r"|hazy|sl(?:ightly)?[ ](?:cloudy|hazy)|turbid|pending|immune|non-?immune|equivocal"
    r"|indeterminate|borderline|inconclusive|invalid"
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
    r"|deferred|refused)"
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
MARK = r"(?:\^[a-z1-9]|[@†‡§#^]|\*{1,3}|!{1,2}|[¹²³⁴⁵⁶⁷⁸⁹⁰]{1,2}|[ᵃᵇᶜᵈᵉᶠ]|[a-f](?![\w/]))"
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
