"""Builds the lexicon of diseases and drugs from published data; runs by hand, never at start-up.

`python -m lexicon_build` reads downloaded packages and writes one compressed file that the local
engine reads. The same packages give the same file.
"""
