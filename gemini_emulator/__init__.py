"""A Gemini-compatible service on loopback, for tests, benchmarks and rehearsals of an outage.

May import `prompts`, `local` and nothing that knows of rows. Everything goes over real HTTP, so
that the real client, its pools and its errors are exercised. See `docs/emulator.md`.
"""

from __future__ import annotations

from gemini_emulator.process import Emulator
from gemini_emulator.request_log import LogLine, read_log

__all__ = ["Emulator", "LogLine", "read_log"]
