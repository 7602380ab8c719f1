"""Extraction quality of the local engine on labelled data: readers of labels, scores, one table.

May import `provider.local`, `reader` and `types`; no Django. Nothing of a labelled text is printed
but with `--misses`, which is for the folder's owner.
"""

from __future__ import annotations

from evaluation.run import evaluate
from evaluation.scores import Score

__all__ = ["Score", "evaluate"]
