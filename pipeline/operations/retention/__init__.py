"""Retention: what is deleted after its time, and the erasure of a record or of a patient."""
