"""Medications: the grammar of directions, and their structured form."""
