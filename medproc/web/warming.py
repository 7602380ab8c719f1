"""The one-time work of a process of the web server, before its first request."""

from __future__ import annotations

import gc
from importlib import import_module

from django.conf import settings

GC_ALLOCATIONS = 10_000
"""New objects between two runs of the garbage collector, instead of Python's 700. A preview of
10,000 jobs makes many objects and few cycles, and needs a fifth less time."""


def warm() -> None:
    """Import the pages, exempt what is loaded from garbage collection, and collect rarely."""
    import_module(settings.ROOT_URLCONF)
    gc.collect()
    gc.freeze()
    gc.set_threshold(GC_ALLOCATIONS)
