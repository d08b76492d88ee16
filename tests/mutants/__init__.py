"""Planted bugs: small faults in the source, and the tests that find each.

``faults/`` has them in groups, `faults` reads them, `tree` is the copy in which they are planted,
`rust` and `python` run the named tests there, ``python -m tests.mutants`` does all of it.
"""
