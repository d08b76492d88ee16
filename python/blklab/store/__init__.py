"""The store: every run of every comparison, stored when it ends, with all data for its analysis.

SQLite in a file by default; PostgreSQL by a URL. One comparison is a row of `comparison`, and each
of its runs a row of `run`, written in one transaction when the run ends; so a killed command leaves
complete rows, and `blklab.store.request` resumes from them.
"""
