"""The shapes and the style sheet of the HTML export."""

from __future__ import annotations

SHAPES = {
    "medication": "◆",
    "condition": "▲",
    "symptom": "△",
    "vital": "●",
    "lab": "■",
    "allergy": "✖",
    "immunization": "✚",
    "procedure": "★",
}
"""Category → the shape in front of each of its marks."""
UNKNOWN_SHAPE = "○"

STYLE = """
:root { color-scheme: light dark; }
body { font: 1rem/1.5 system-ui, sans-serif; margin: 0 auto; max-width: 64rem; padding: 1rem; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; border: 1px solid; padding: 1rem;
  unicode-bidi: isolate; }
mark { background: none; color: inherit; border-bottom: 3px solid #0b57d0; }
mark.k-condition { border-bottom: 3px double #b3261e; }
mark.k-symptom { border-bottom: 3px dotted #b3261e; }
mark.k-vital { border-bottom: 3px dotted #146c2e; }
mark.k-lab { border-bottom: 3px solid #146c2e; }
mark.k-allergy { border-bottom: 3px dashed #b3261e; }
mark.k-immunization { border-bottom: 3px dashed #146c2e; }
mark.k-procedure { border-bottom: 3px dashed #0b57d0; }
sup { font-size: 0.7em; line-height: 1; }
.notice { border: 3px solid #b3261e; font-weight: bold; padding: 0.5rem 1rem; }
.legend { columns: 3; list-style: none; padding: 0; }
table { border-collapse: collapse; width: 100%; }
th, td { border-bottom: 1px solid; overflow-wrap: anywhere; padding: 0.25rem 0.5rem;
  text-align: left; vertical-align: top; }
@media (prefers-color-scheme: dark) {
  body { background: #121212; color: #eee; }
  a { color: #a8c7fa; }
  mark.k-condition, mark.k-symptom, mark.k-allergy { border-bottom-color: #f2b8b5; }
  mark.k-vital, mark.k-lab, mark.k-immunization { border-bottom-color: #6dd58c; }
  mark, mark.k-procedure { border-bottom-color: #a8c7fa; }
}
"""
"""Styles for light and dark; each category has its own line besides its colour."""
