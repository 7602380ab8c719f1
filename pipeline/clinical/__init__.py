"""Clinical meaning, without a database and without a provider: attributes, units, lists, checks.

Passes 1.5 to 3 and the local engine share this package. Every function is pure and deterministic.
"""
