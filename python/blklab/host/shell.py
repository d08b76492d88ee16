"""Commands, as they stand in rules, units and scripts, that write to a disk's queue."""

from __future__ import annotations

import re

# Of a pattern or a variable only the end.
TARGET = re.compile(
    r"/sys/(?:block|class/block)/(?P<disk>[^/\s\"']+)/queue/(?P<attribute>[a-z_]+(?:/[a-z_]+)?)"
)
"""A file of a queue, by its whole path."""
ECHOED = re.compile(r"\becho\s+(?:-n\s+)?[\"']?(?P<value>[A-Za-z0-9_-]+)[\"']?\s*>")
"""What is written."""
