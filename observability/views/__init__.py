"""The console's pages: each module answers one question.

A view checks the right, reads with selectors, and renders a template. The actions of
operators are in `pipeline.operations.operator_actions`.
"""
