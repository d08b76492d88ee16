"""Whether the simulator tells the truth: the same runs on `sim` and on `kernel`.

`matrix` says which runs, `jobs` and `draw` which others, `measure` makes a cell of two results,
`verdict` holds the cells against the bar, `shares` counts how many figures are how close. Both
rigs have the same disk model, the same I/O sequence (the native driver; fio itself where the page
cache is part of the run) and a host whose CPU work costs nothing.
"""
