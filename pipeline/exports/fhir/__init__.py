"""FHIR R4: one Bundle of type `document` for a record. Rows in, JSON-ready values out.

`placement.py` decides what an entity becomes; one module per kind of resource maps the entity.
Nothing here is a conclusion: a code, a status or a number that the rows do not hold is left out.
"""
