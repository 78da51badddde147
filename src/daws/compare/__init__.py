"""Strategies side by side: many simulations in several processes, their results kept in a file, and what they say.

`cases.py` has what is to be run, `jobs.py` runs it in processes, `results.py` keeps it, `summary.py` adds it up,
`picture.py` draws it and `page.py` makes one page of it all. Prints nothing.
"""
