"""The lists of a record across its encounters: problems, medications, allergies, lab series.

Every function is pure. Statements that exclude each other are shown as contradictions; no function
chooses between them.
"""
