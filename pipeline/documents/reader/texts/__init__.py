"""Files that hold text instead of pages: plain text, RTF, DOCX, C-CDA. Runs in the child only.

Each format becomes lines of words and cells. `typesetting.py` sets the lines on pages of paper, so
that each word has a place, and `drawing.py` draws these pages for the console.
"""
