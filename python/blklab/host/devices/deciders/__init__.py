"""What sets a disk's queue on this machine: udev's rules, tuned, TLP, units, tmpfiles, ...

Each file handles one of them and finds its influences by reading its configuration. The order
in which they come at boot is that of `ALL` in ``order.py``; the last one wins.
"""
