"""The application as functions: what the commands call, and what a notebook calls.

Each function takes typed arguments, returns a typed result and prints nothing. What a person
should see while it runs goes to a `Listener`. `blklab` itself exports them: ``blklab.compare``.
"""
