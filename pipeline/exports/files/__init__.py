"""The only writer of the exports' files. A file appears whole, and a pair appears as a pair."""
