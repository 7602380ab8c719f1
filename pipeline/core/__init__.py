"""The vocabulary that every layer shares: states, error codes, values, labels, identities.

This package imports no other package of the pipeline.
"""
