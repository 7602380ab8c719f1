"""Mass actions: a frozen filter, a preview, a reason, then a run in the background, item by item.

`selections` reads the filter from a URL, `operations` makes and aborts, `running` is the clock's
duty. What an item does is a verb of `pipeline.operations.services`; the guard is in its UPDATE.
"""
