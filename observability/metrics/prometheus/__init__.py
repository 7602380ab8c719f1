"""The endpoint `/metrics` for Prometheus: declarations, the two sources, and the collector."""
