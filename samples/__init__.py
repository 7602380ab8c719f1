"""Sample records written for this project, with their truth, and the code that makes them.

Imports nothing of the application. `python -m samples.generate` writes the committed PDFs and
`*.truth.json` files; tests may import `samples.bulk` and `samples.truth`.
"""

from __future__ import annotations
