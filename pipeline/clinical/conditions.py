"""Structure the statuses, the dates, the severity and the place of a condition or a symptom.

The values are those of FHIR R4B `Condition`. A status that no text states is None.
"""

from __future__ import annotations

from typing import get_args

from pipeline.clinical.attributes import ClinicalStatus, ConditionAttributes
from pipeline.clinical.structured import Printed, Structured


def condition_attributes(printed: Printed) -> Structured:
    """Return the attributes of a condition or symptom."""
    status = printed.status if printed.status in get_args(ClinicalStatus) else None
    return Structured(attributes=ConditionAttributes.model_validate({"clinical_status": status}))
