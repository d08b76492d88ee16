"""Compare schedulers: plan, run, analyse and decide, with plain data between the steps.

Showing is not here: `blklab.cli` prints, `blklab.report` draws.
"""
