"""Pass 1: the clinical entities of each encounter, batch by batch, published completely or not.

`boundaries`, `planner` and `align` are pure; the other modules of this package run them.
"""

from __future__ import annotations
