"""Write the sample records and their truth beside this file: `python -m samples.generate`.

Every run produces the same bytes. A record whose print and truth differ is not written.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

from samples import (
    check,
    lab_record,
    long_record,
    scan_record,
    traps_record,
    truth,
    visits_record,
)
from samples.clinical.extend import extend
from samples.layout import Book

TEXT_RECORDS: dict[str, Callable[[], Book]] = {
    "lab_5p_8enc": lab_record.build,
    "visits_20p_4enc": visits_record.build,
    "long_72p": long_record.build,
    "traps_10p": traps_record.build,
}
SCAN = "scan_5p"


def text_record(name: str) -> tuple[bytes, truth.Record]:
    """Build the text record `name`. Raises ValueError if print and truth differ."""
    pdf, record, _ = _checked(name, TEXT_RECORDS[name]())
    return pdf, record


def scanned_record() -> tuple[bytes, truth.Record]:
    """Build the scan. Its truth is the truth of the clean print, with the clean text."""
    clean, record, texts = _checked(SCAN, scan_record.build())
    changes = {
        "text_layer": False,
        "rotated_pages": scan_record.rotations(),
        "page_texts": texts,
    }
    return scan_record.scan(clean), record.model_copy(update=changes)


def _checked(name: str, book: Book) -> tuple[bytes, truth.Record, list[str]]:
    pdf, record = book.pdf(), book.record(f"{name}.pdf")
    texts = check.page_texts(pdf)
    wrong = check.misplaced_quotes(record, texts)
    wrong += check.unmarked_measures(book) + check.unmarked_terms(book)
    if wrong:
        raise ValueError(f"{name}: " + "; ".join(wrong[:20]))
    return pdf, extend(name, book, record), texts


def write(name: str, pdf: bytes, record: truth.Record) -> None:
    """Write one record and its truth, and print its size."""
    (truth.HERE / f"{name}.pdf").write_bytes(pdf)
    (truth.HERE / f"{name}.truth.json").write_text(truth.dump(record), "utf-8")
    found = sum(len(encounter.entities) for encounter in record.encounters)
    print(
        f"{name}: {record.pages} pages, {len(record.encounters)} encounters, "
        f"{found} entities, {len(pdf) / 1024:.0f} KiB"
    )


def main(names: list[str]) -> None:
    """Write the named records, or all records."""
    for name in TEXT_RECORDS:
        if not names or name in names:
            write(name, *text_record(name))
    if not names or SCAN in names:
        write(SCAN, *scanned_record())


if __name__ == "__main__":
    main(sys.argv[1:])
