"""Write the sample records and their truth beside this file: `python -m samples.generate`.

May import every module of `samples`. Running it again gives the same bytes; a record that does
not say what its truth says is not written.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

from samples import check, lab_record, long_record, traps_record, truth, visits_record
from samples.layout import Book

TEXT_RECORDS: dict[str, Callable[[], Book]] = {
    "lab_5p_8enc": lab_record.build,
    "visits_20p_4enc": visits_record.build,
    "long_72p": long_record.build,
    "traps_10p": traps_record.build,
}


def text_record(name: str) -> tuple[bytes, truth.Record]:
    """Build the text record `name`; raise ValueError where print and truth differ."""
    book = TEXT_RECORDS[name]()
    pdf, record = book.pdf(), book.record(f"{name}.pdf")
    wrong = check.stands_on_its_page(record, check.page_texts(pdf))
    wrong += check.unmarked_measures(book)
    if wrong:
        raise ValueError(f"{name}: " + "; ".join(wrong[:20]))
    return pdf, record


def write(name: str, pdf: bytes, record: truth.Record) -> None:
    """Write one record and its truth."""
    (truth.HERE / f"{name}.pdf").write_bytes(pdf)
    (truth.HERE / f"{name}.truth.json").write_text(
        record.model_dump_json(indent=1, exclude_none=False) + "\n", "utf-8"
    )
    found = sum(len(e.entities) for e in record.encounters)
    print(
        f"{name}: {record.pages} pages, {len(record.encounters)} encounters, "
        f"{found} entities, {len(pdf) / 1024:.0f} KiB"
    )
    for e in record.encounters:
        print(f"  {e.index} {e.type} {e.date_start} pages {e.pages}: {len(e.entities)}")


def main(names: list[str]) -> None:
    """Write the named records, or all."""
    for name in TEXT_RECORDS:
        if not names or name in names:
            write(name, *text_record(name))


if __name__ == "__main__":
    main(sys.argv[1:])
