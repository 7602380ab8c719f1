"""The text of one document: lines, sentences, zones, dates, language."""
