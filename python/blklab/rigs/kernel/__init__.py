"""Linux itself as a program: sources, builds, the cache, and guests.

User-mode Linux is the whole kernel compiled into one executable that runs without root and
without hardware virtualisation. `build` makes one of a source and patches, `cache` keeps it,
`boot` runs it.
"""

DRIVERS = ("fio", "native")
"""The programs that can issue the I/O in a guest."""
DEFAULT_VERSION = "7.3"
"""What is built if nothing else is said: of trixie-backports. 7.2 and newer run on every CPU."""
