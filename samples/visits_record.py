"""`visits_20p_4enc`: an office visit, an emergency visit, a stay and a consult, five pages each.

The continuation pages of each facility carry that facility's kind of running header, or nothing.
"""

from __future__ import annotations

from samples import visits_hospital, visits_outpatient
from samples.layout import Book
from samples.visits_patient import PATIENT


def build() -> Book:
    """Write the record. Raises ValueError if an encounter does not fill its five pages."""
    book = Book(PATIENT)
    parts = (
        visits_outpatient.office_visit,
        visits_hospital.emergency_visit,
        visits_hospital.stay,
        visits_outpatient.cardiology_consult,
    )
    for number, part in enumerate(parts, 1):
        part(book)
        if book.page != number * 5:
            raise ValueError(f"{part.__name__} ends on page {book.page}")
    return book
