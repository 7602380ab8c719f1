"""The processes: RQ worker, worker pool, and the entry point that runs one step of one job."""
