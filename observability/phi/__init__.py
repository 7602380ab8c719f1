"""The pages that show PHI: record pages with their entities, prompts and replies.

This package writes nothing and caches nothing. The views write the audit row of each reading.
"""

from __future__ import annotations
