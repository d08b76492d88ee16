"""This machine: its disks, its udev rules, and who decides how a disk's queue is set.

Only `devices.queue` sets anything; all else is read.
"""
