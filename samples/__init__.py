"""Sample records written for this project, with their truth, and the code that generates them.

`python -m samples.generate` writes the committed PDFs and `*.truth.json` files. Tests use
`samples.bulk` and `samples.truth`. The package knows nothing of the application.
"""

from __future__ import annotations
