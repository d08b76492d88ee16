"""Plain typed data: what is asked (disk, workload, scheduler, experiment) and what comes of it.

Nothing here runs an experiment. The compiled core is asked only what exists and whether a text is
right (`core`).
"""
