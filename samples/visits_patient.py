"""The patient of `visits_20p_4enc`."""

from __future__ import annotations

import datetime as dt

from samples import truth

PATIENT = truth.PatientTruth(
    name="Okafor-Lindqvist, Desmond A.",
    birth_date=dt.date(1957, 11, 2),
    identifier="7730416",
    sex="M",
)
