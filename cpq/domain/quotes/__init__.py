"""A quote before it is stored: the draft, changes to it, and the life of a quote."""
