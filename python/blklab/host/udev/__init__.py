"""udev's rules: the files, their contents, and their effect on one disk.

Follows systemd 252's ``udev-rules.c`` and udev(7). Rules are read and judged, never run: a result
that depends on a program's answer is reported as unknown, with the file and line.
"""
