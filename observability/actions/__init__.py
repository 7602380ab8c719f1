"""Bulk operations: a frozen filter, a preview, a reason, then a background run, item by item.

`filters` reads the filter from a URL, `bulk_operations` starts and aborts, and `bulk_runner` is
the periodic task that runs the items. Each item is one guarded UPDATE of the pipeline.
"""
