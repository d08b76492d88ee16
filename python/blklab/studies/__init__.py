"""Studies, one TOML file each: a comparison, its question, and published results.

Your own are in ``~/.local/share/blklab/studies``, in the directory that ``BLKLAB_STUDIES`` names,
or anywhere, given by path. Further files of a study (patches) are in the directory of its name.
"""

from __future__ import annotations

from pathlib import Path

from blklab.base.catalogue import Catalogue

STUDIES = Catalogue("study", ".toml", Path(__file__).parent, "BLKLAB_STUDIES")
