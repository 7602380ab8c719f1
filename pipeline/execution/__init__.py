"""Runs one step of one job.

The executor thread decides and writes. Call threads call the provider.
"""
