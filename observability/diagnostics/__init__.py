"""What is wrong now: the overview, failures in groups, incidents, stale work."""
