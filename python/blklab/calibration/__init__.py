"""The CPU costs of this machine's I/O, measured on a fast device of the kernel's own.

fio's random reads of 4 KiB give the rates of each scheduler for one job and for more jobs than CPUs
(`load`). The costs of the simulator's host are those with which the simulator has the same rates
(`fit`). Other loads are then measured and simulated, and compared (`judge`).
"""
