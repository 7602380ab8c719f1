"""Code systems: their loaders and the search for candidate codes.

Every code comes from a source with a name and a licence (docs/codes.md).
"""
