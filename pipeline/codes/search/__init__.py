"""The search for candidate codes: full-text and n-gram vectors, ranked by coverage and facets.

`index.fill` builds the index of one code system; `search.shortlists` answers many queries at once.
"""
