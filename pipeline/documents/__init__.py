"""Stored files and their pages: from bytes to text.

The reader runs in a child process with limits. Storage keeps uploads under server-made names.
"""
