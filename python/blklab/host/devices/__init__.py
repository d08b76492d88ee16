"""The block devices of this machine: their kind, their settings, and what sets these.

Everything is read from sysfs, procfs and the configuration files below `roots.Roots`, as any
user may; no program is run. What a device reports about itself is hostile input, and is printed
through `text.shown` only.
"""
