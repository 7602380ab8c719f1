"""What the text says about an entity, in the terms of ConText and of FHIR MedicationStatement.

NULL in a column of these values means "not assessed". `providers.schemas` lists the same values.
"""

from __future__ import annotations

from django.db import models


class Temporality(models.TextChoices):
    """The time of a fact, seen from the encounter."""

    CURRENT = "current"
    HISTORICAL = "historical"
    """Over before the encounter, or measured earlier."""
    PLANNED = "planned"
    """Scheduled, ordered or proposed."""


class Certainty(models.TextChoices):
    """How sure the text is of a fact."""

    CERTAIN = "certain"
    POSSIBLE = "possible"
    """Suspected, probable, or not excluded."""
    HYPOTHETICAL = "hypothetical"
    """Under a condition, as a risk, or not done yet."""


class Experiencer(models.TextChoices):
    """The person of a fact."""

    PATIENT = "patient"
    FAMILY = "family"
    """A blood relative."""
    OTHER = "other"
    """A spouse, donor, roommate or another person."""


class MedicationStatus(models.TextChoices):
    """What the text says about the use of a medication."""

    ACTIVE = "active"
    STOPPED = "stopped"
    """Taken before, and no longer taken."""
    ON_HOLD = "on_hold"
    """Paused; the text may say until when."""
    PLANNED = "planned"
    """To be started, considered, or under a condition."""
    NOT_STARTED = "not_started"
    """Declined, avoided, never started, or listed and not taken."""
    CHANGED = "changed"
    """Taken with a new dose; `previous_dose` is the old dose."""
    ENTERED_IN_ERROR = "entered_in_error"
    """The list is wrong: the text says so, or the text is struck through."""
