"""The rules in the order in which they read a document; the order decides who claims what.

May import the rule modules.
"""

from __future__ import annotations

from collections.abc import Callable

from pipeline.provider.local.mentions import read_mentions
from pipeline.provider.local.reading import Reading

RULES: tuple[Callable[[Reading], None], ...] = (read_mentions,)
