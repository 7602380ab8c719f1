"""The audit trail: every operator action with its user, reason and result, in a verified chain."""
