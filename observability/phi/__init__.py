"""What somebody with the right to see PHI reads: pages with their entities, prompts and replies.

Imports the pipeline's models, reader, storage and stages. Nothing here writes or keeps anything;
the views that show it write the audit.
"""

from __future__ import annotations
