"""The web server of the console: gunicorn with bounds, its log, probes, and static files."""
