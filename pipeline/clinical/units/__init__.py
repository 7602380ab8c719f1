"""Printed units and their UCUM codes.

A print with two meanings has no code, unless the context (cells, an enzyme, a vital sign, a
medication) leaves one. The runtime uses no UCUM library: libraries read UCUM codes, and none reads
prints such as `K/uL`, `MEQ/L` or `bpm`. Tests check each code with `ucumvert`.
"""

from __future__ import annotations

from pipeline.clinical.units.printed_unit import UnitContext, ucum_code

__all__ = ["UnitContext", "ucum_code"]
