"""The review of results by people: the queue, the decisions, the rounds, and what they teach.

Every change is one transaction of a reviewer who holds the claim. Callers check the permission and
write the audit row (`observability.actions.reviews`).
"""
