"""Pass 0.5 of the local engine: the encounters of a chunk of pages."""
