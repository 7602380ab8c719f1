"""Vital signs: running text, lists, tables and flowsheets."""
