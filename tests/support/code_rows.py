"""A small part of ICD-10-CM in the code tables, with its search index.

Every code and term is read from the installed package when a test asks for them, so no test holds
a code system from memory.
"""

from __future__ import annotations

from functools import cache

from pipeline.codes.loaders.icd10cm import Icd10Cm
from pipeline.codes.loaders.rows import CodeRow, TermRow
from pipeline.codes.search import index
from pipeline.models import Code, CodeSystem, CodeTerm
from pipeline.models.codes import SystemKey

PREFIXES = (
    "I10", "E11.4", "E11.9", "E78.5", "M17", "J44", "N18.3", "R10.3", "R07.9", "H66.9", "O14.1",
    "K21", "K70.3", "G56.0", "S72.00", "S93.40", "I50.2", "R55",
)  # fmt: skip
"""About 200 codes: sides, stages, trimesters, encounters, wounds, "with" and "without"."""


@cache
def icd_rows() -> tuple[tuple[CodeRow, ...], tuple[TermRow, ...]]:
    """Return the codes below PREFIXES with their headings, and the terms of these codes."""
    codes: dict[str, CodeRow] = {}
    terms: list[TermRow] = []
    for row in Icd10Cm().rows():
        if isinstance(row, TermRow):
            terms.append(row)
        elif isinstance(row, CodeRow):
            codes[row.code] = row
    wanted: set[str] = set()
    for code in codes:
        if code.startswith(PREFIXES):
            above: str | None = code
            while above is not None and above not in wanted:
                wanted.add(above)
                above = codes[above].parent
    return (
        tuple(row for code, row in codes.items() if code in wanted),
        tuple(row for row in terms if row.code in wanted),
    )


def load_icd_part() -> CodeSystem:
    """Insert the rows and fill the index; return the system."""
    codes, terms = icd_rows()
    system = CodeSystem.objects.create(
        key=SystemKey.ICD10CM,
        version=Icd10Cm().version(),
        source=Icd10Cm().name,
        licence=Icd10Cm.licence,
        digest="0" * 64,
    )
    made = Code.objects.bulk_create(
        Code(
            system=system,
            code=row.code,
            display=row.display,
            parent=row.parent,
            billable=row.billable,
            kind=row.kind,
            properties=row.properties,
        )
        for row in codes
    )
    ids = {code.code: code.id for code in made}
    CodeTerm.objects.bulk_create(
        [CodeTerm(code_id=ids[row.code], text=row.display) for row in codes]
        + [CodeTerm(code_id=ids[row.code], text=row.text, kind=row.kind) for row in terms]
    )
    index.fill(SystemKey.ICD10CM)
    return system
