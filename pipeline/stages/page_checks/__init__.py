"""Whether a page prints what a reply says: names, figures, doses, frequencies, dates.

Pass 1 and Pass 2 share these checks. They are pure and judge every engine alike.
"""
