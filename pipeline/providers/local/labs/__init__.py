"""Laboratory results: tables, rows and running text."""
