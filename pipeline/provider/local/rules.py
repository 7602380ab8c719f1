"""The rules in the order in which they read a document; the order decides who claims what.

May import the rule modules.
"""

from __future__ import annotations

from collections.abc import Callable

from pipeline.provider.local.immunizations import read_immunization_rows
from pipeline.provider.local.labs import read_labs
from pipeline.provider.local.medications import read_unknown_drugs
from pipeline.provider.local.mentions import read_by_ending, read_mentions
from pipeline.provider.local.reading import Reading
from pipeline.provider.local.slash_lists import read_slash_lists
from pipeline.provider.local.vitals import read_vitals

RULES: tuple[Callable[[Reading], None], ...] = (
    read_vitals,
    read_labs,
    read_slash_lists,
    read_immunization_rows,
    read_mentions,
    read_unknown_drugs,
    read_by_ending,
)
