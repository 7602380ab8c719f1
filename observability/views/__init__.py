"""The console's pages. Each module answers one question; `guard` says who may ask it.

Views take what selectors of this application have read and give it to a template; the actions are
services of the pipeline.
"""
