"""Modelled disks by name. Those that ship are files of the core, every number with its source.

A disk of your own is one more file, in ``~/.local/share/blklab/disks`` or in the directory
that ``BLKLAB_DISKS`` names.
"""

from __future__ import annotations

from pathlib import Path

from blklab import _core
from blklab.base.catalogue import Catalogue

DISKS = Catalogue("disk", ".toml", Path(__file__).parent, "BLKLAB_DISKS", _core.disk_files())
