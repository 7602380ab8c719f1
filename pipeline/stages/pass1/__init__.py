"""Pass 1: the clinical entities of every encounter, batch by batch, published whole or not at all.

`boundaries`, `planner` and `align` are pure; the other modules of this package run them.
"""

from __future__ import annotations
