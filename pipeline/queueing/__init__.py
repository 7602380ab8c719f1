"""The link between job rows and Redis queues: enqueueing, RQ's registries, the reconciler."""
