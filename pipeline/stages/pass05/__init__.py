"""Pass 0.5: the healthcare encounters of a record, found chunk by chunk and then joined.

`reconcile` is pure; the other modules of this package run it against the database and a provider.
"""

from __future__ import annotations
