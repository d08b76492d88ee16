"""Compare schedulers: plan, run, analyse and decide, with plain data between the steps.

Output is elsewhere: `blklab.cli` prints, `blklab.report` draws.
"""
