"""The store: every run of every comparison, kept at once, with all that it takes to judge it.

SQLite in a file by default; PostgreSQL by a URL. One comparison is a row of `comparison`, and
each of its runs a row of `run`, written in one transaction when the run ends; what a killed
command leaves is whole, and `blklab.store.request` goes on from it.
"""
