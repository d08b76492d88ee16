"""This machine: its disks, its udev rules, and what sets a disk's queue.

Only `devices.queue` sets anything; all else is read.
"""
