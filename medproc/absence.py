"""The message for a command whose server refuses: away, full, read-only, or out of connections.

The message is one line with a code and advice, and without the password of an address. It is None
if the error has another cause, which must not be hidden.
"""

from __future__ import annotations

from pipeline.core.server_faults import fault_of, line_of


def explain(error: Exception) -> str | None:
    """Return one line that names the fault of the server and the remedy, or None."""
    fault = fault_of(error)
    return None if fault is None else line_of(fault)
