"""Between the rows of jobs and the queues in Redis: enqueueing, RQ's registries, the reconciler."""
