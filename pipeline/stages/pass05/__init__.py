"""Pass 0.5: which healthcare encounters a record holds, found chunk by chunk and joined.

`reconcile` is pure; the other modules of this package run it against the database and a provider.
"""

from __future__ import annotations
