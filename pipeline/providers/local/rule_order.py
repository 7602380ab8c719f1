"""The rules in the order in which they read a document. An earlier rule claims text first."""

from __future__ import annotations

from collections.abc import Callable

from pipeline.providers.local.document_state import DocumentState
from pipeline.providers.local.labs.rule import read_labs
from pipeline.providers.local.medications.immunizations import read_immunization_rows
from pipeline.providers.local.medications.rule import read_unknown_drugs
from pipeline.providers.local.medications.tables import read_medication_tables
from pipeline.providers.local.names.mentions import read_by_ending, read_defined, read_mentions
from pipeline.providers.local.names.slash_lists import read_slash_lists
from pipeline.providers.local.vitals.rule import read_vitals

RULES: tuple[Callable[[DocumentState], None], ...] = (
    read_medication_tables,
    read_vitals,
    read_labs,
    read_slash_lists,
    read_immunization_rows,
    read_mentions,
    read_defined,
    read_unknown_drugs,
    read_by_ending,
)
