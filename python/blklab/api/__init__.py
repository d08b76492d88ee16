"""The application as functions, for the commands and for notebooks.

Each function takes typed arguments, returns a typed result and prints nothing. Notes and progress
go to a `Listener`. `blklab` exports the functions: ``blklab.compare``.
"""
