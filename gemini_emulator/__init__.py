"""A Gemini-compatible service on loopback, for tests, benchmarks and rehearsals of an outage.

Every call uses real HTTP, so that the real client, its connection pools and its errors are
exercised. The package knows no database rows, except in `recorded_rows`. See `docs/emulator.md`.
"""

from __future__ import annotations

from gemini_emulator.process import Emulator
from gemini_emulator.request_log import LogLine, read_log

__all__ = ["Emulator", "LogLine", "read_log"]
