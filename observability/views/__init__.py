"""The console's pages: each module answers one question.

A view checks the right, reads with selectors, and renders a template. Operator actions are services
of the pipeline.
"""
