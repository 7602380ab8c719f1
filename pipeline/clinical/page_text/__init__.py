"""The text of a page as the rules read it: lines, sentences, rows, and comparable spellings."""
