"""The local engine of Pass 2: what the evidence of an entity says, as printed."""
