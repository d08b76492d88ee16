"""Linux itself as a program: sources, builds, the cache, and guests.

User-mode Linux is the whole kernel compiled into one executable that runs without root and
without hardware virtualisation. `build` makes one from a source and patches, `cache` stores it,
`boot` runs it.
"""

DRIVERS = ("native", "fio")
"""The programs that can issue the I/O in a guest; the first is the default."""
DEFAULT_VERSION = "7.3"
"""The default version, from trixie-backports. 7.2 and newer run on every CPU."""
