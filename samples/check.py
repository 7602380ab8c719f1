"""Checks that the PDF of a text record says exactly what its truth says, and judges the passes.

The checks of the print return the deviations. `clinical_differences` compares the stored results of
Passes 1.5 to 3 with the truth.
"""

from __future__ import annotations

import re
from pathlib import Path
from uuid import UUID

import pypdfium2

from samples import truth
from samples.clinical.compare import Difference, differences
from samples.layout import Book, LineLayout

_MEASURE = re.compile(
    r"(?<![\w.])\d[\d.,/]*\s?(?:mg|mcg|ug|g|mEq|mL|units?|mmHg|bpm|°F|%|lb|kg|ng|IU|mmol|K/uL)"
    r"(?![\w-])"
)


_TERMS = {"medication", "condition", "symptom", "allergy", "immunization", "procedure"}


def clinical_differences(name: str, shell_file_id: UUID) -> list[Difference]:
    """Return where the stored results of a processed sample differ from its truth.

    Needs a configured Django and its database. A difference with `doubted` is of an entity that
    carries a flag; every other difference is a defect.
    """
    from samples.clinical import stored  # the generator of the samples needs no database

    record = truth.load(name)
    return differences(record, stored.read(shell_file_id, record))


def page_texts(pdf: bytes | Path) -> list[str]:
    """Return the text layer of each page, with line feeds between the lines."""
    document = pypdfium2.PdfDocument(pdf)
    try:
        return [page.get_textpage().get_text_range().replace("\r\n", "\n") for page in document]
    finally:
        document.close()


def misplaced_quotes(record: truth.Record, texts: list[str]) -> list[str]:
    """Return the parts of `record` that are not verbatim on their page; [] if all are."""
    missing = []
    for encounter in record.encounters:
        for span in encounter.spans:
            for text in (span.first_line_text, span.last_line_text):
                if text not in texts[span.page - 1].split("\n"):
                    missing.append(f"page {span.page}: line {text!r}")
        for entity in encounter.entities:
            lines = texts[entity.page - 1].split("\n")
            if entity.line not in lines or entity.quote not in entity.line:
                missing.append(f"page {entity.page}: quote {entity.quote!r}")
    return missing


def unmarked_terms(book: Book) -> list[str]:
    """Return lines with a term that is an entity elsewhere in the record but not in this line."""
    lines = [
        (number, line)
        for number, sheet in enumerate(book.sheets, 1)
        for line in sheet.lines
        if line.encounter and not sheet.unsupported
    ]
    named = {m.name for _, line in lines for m in line.mentions if m.category in _TERMS}
    if not named:
        return []
    longest_first = sorted(map(re.escape, named), key=len, reverse=True)
    term = re.compile(rf"(?<![\w-])(?:{'|'.join(longest_first)})(?![\w-])", re.IGNORECASE)
    return [f"page {number}: {line.text}" for number, line in lines if term.search(_rest(line))]


def _rest(line: LineLayout) -> str:
    """Return the text of a line without its entities and the reactions of its allergies."""
    rest = line.text
    for mention in sorted(line.mentions, key=lambda m: -len(m.quote)):
        rest = rest.replace(mention.quote, " ", 1)
        if reaction := mention.attributes.get("reaction"):
            rest = rest.replace(reaction, " ", 1)
    return rest


def unmarked_measures(book: Book) -> list[str]:
    """Return printed measures without an entity: the truth must contain every measure."""
    found = []
    for number, sheet in enumerate(book.sheets, 1):
        for line in sheet.lines:
            if line.encounter and not sheet.unsupported and _MEASURE.search(_rest(line)):
                found.append(f"page {number}: {line.text}")
    return found
