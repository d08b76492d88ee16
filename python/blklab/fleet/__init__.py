"""Many machines' disks: the file that lists the machines, what is collected from them and how it is
kept, groups of disks, and a udev rule for each group. Nothing here runs an experiment.

Machines are only read: `collect.sh` is all that runs on them, besides ``cat`` of a recording.
"""
