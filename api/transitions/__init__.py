"""The only writers of a status in the tables of the API; `pipeline/transitions` is their model."""
