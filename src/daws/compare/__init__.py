"""Strategies side by side: many simulations in several processes, with their results in a file, and a summary.

`cases.py` has the simulations to run, `jobs.py` runs them in processes, `results.py` keeps the results, `summary.py`
adds them up, `picture.py` draws them and `page.py` makes one page of it all. The package prints nothing.
"""
