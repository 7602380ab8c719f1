"""Pass 3: the narrative of each encounter and of the record."""
