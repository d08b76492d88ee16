"""udev's rules: which files there are, what stands in them, what they do to one disk.

Behaviour after systemd 252's ``udev-rules.c`` and udev(7). Rules are read and judged, never
run: what depends on a program's answer is said to be unknown, with the file and line.
"""
