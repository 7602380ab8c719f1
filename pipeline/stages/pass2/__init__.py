"""Pass 2: the structured attributes and the code of each entity."""
