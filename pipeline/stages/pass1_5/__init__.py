"""Pass 1.5: a shortlist of candidate codes for each entity; an optional embedder orders it."""
