"""Checks the simulator against a real kernel: the same runs on `sim` and on `kernel`.

`matrix` lists the standard runs, `jobs` and `draw` make others, `measure` makes a cell from two
results, `verdict` compares the cells with the bar, `shares` counts the figures within each bound.
Both rigs have the same disk model, the same I/O sequence (the native driver; fio itself where the
page cache is part of the run) and a host on which CPU work takes no time.
"""
