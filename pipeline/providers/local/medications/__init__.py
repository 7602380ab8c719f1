"""Medications, allergies and immunizations, with doses and status."""
