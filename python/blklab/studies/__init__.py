"""Studies, one TOML file each: what is compared, why, and what others found.

Your own lie in ``~/.local/share/blklab/studies``, in the directory that ``BLKLAB_STUDIES``
names, or anywhere, given by path. What a study needs beside its file (patches) lies in the
directory of its name.
"""

from __future__ import annotations

from pathlib import Path

from blklab.base.catalogue import Catalogue

STUDIES = Catalogue("study", ".toml", Path(__file__).parent, "BLKLAB_STUDIES")
