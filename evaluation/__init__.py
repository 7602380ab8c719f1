"""Extraction quality of the local engine on labelled data: readers of labels, scores, one table.

Only `--misses`, meant for the owner of the data, prints text of the labelled data. The package
knows no Django, except in its command.
"""

from __future__ import annotations

from evaluation.run import evaluate
from evaluation.scores import Score

__all__ = ["Score", "evaluate"]
