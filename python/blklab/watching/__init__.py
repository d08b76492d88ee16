"""The decisions of `blklab watch`: a disk's counters in, the scheduler to set out.

`load` has the figures of one interval, `kinds` names what they show, `evidence` has how schedulers
serve a kind of load, `kept` finds that in stored comparisons, and `decide` decides. Nothing here
reads a disk, sets one or looks at a clock: `blklab.api.watch` does that, and tests give the
simulator's counters in virtual time.
"""
