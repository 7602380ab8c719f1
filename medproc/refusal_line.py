"""The line for a command whose server refuses: away, full, read-only, or out of connections."""

from __future__ import annotations

from pipeline.core.server_faults import fault_of, line_of


def refusal_line(error: Exception) -> str | None:
    """Return one line with the fault, its code and advice, and without the password of an address.

    None if the error has another cause, which must not be hidden.
    """
    fault = fault_of(error)
    return None if fault is None else line_of(fault)
