"""Assertions: negation, temporality, certainty, experiencer, check boxes."""
