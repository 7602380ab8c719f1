"""The log-in of the console: the throttle of attempts, and the end of a session."""
