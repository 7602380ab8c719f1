"""Lists of records: filters by time and state, keyset pagination."""
