"""The truth of Passes 1.5 to 3 beside each sample record, written before the passes.

`extend` adds codes, structured values, lists across encounters and facts of narratives to a truth.
Nothing here imports the pipeline: a mistake of the pipeline cannot become the truth.
"""
