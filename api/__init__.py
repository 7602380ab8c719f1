"""The HTTP API for programs: clients with tokens, records, results and exports."""
