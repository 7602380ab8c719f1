"""What a request passes before its view: refusals, the log-in, and the end of a session."""
