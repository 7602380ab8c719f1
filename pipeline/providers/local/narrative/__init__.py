"""The local engine of Pass 3: sentences that state what the entities state."""
