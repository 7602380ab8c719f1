"""Records that come in through the console: bounded while they arrive, taken in once, written down.

Imports the pipeline's services and the audit.
"""

from __future__ import annotations
