"""Webhooks of the HTTP API: endpoints, the log of deliveries, and the sender."""
