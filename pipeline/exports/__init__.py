"""Exports: the results of one record, as a pair of Parquet and JSON, as FHIR, HTML or CSV.

`snapshot.py` alone reads the database. The packages and modules of the formats are pure: rows in,
bytes out. `files/` alone writes. Every export says whether the record is incomplete and whether a
person has reviewed it.
"""
