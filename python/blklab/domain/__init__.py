"""Plain typed data: the inputs (disk, workload, scheduler, experiment) and the results.

Nothing here runs an experiment. The compiled core only lists its parts and checks texts (`core`).
"""
