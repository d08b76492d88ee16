"""The block devices of this machine: their kind, their settings, and what sets these.

Everything is read from sysfs, procfs and the configuration files below `roots.Roots`, as any
user may; nothing is asked of a program. What devices say of themselves is hostile input, and
is shown through `text.shown` only.
"""
