"""Quality of the local engine on labelled data: readers of labels, counts of attributes, scores.

Only `--misses`, meant for the owner of the data, prints text of the labelled data. The package
writes only a temporary PDF of short texts, and needs neither database nor services. This module
imports nothing, because Django loads it before the models.
"""

from __future__ import annotations
