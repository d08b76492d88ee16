"""Run every stored input again, or the named files: [TARGET [FILE...]]."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Sequence
from pathlib import Path

from blklab_fuzz import packed
from blklab_fuzz.targets import TARGETS

CORPUS = Path(__file__).parents[2] / "corpus/python"


def main(words: Sequence[str]) -> int:
    """1 if one of them fails."""
    name, *files = words or [""]
    failed = 0
    for target in [name] if name else TARGETS:
        kept = packed.read((CORPUS / target).read_text()) if not files else []
        inputs = kept or [Path(file).read_bytes() for file in files]
        for one in inputs:
            try:
                TARGETS[target](one)
            except Exception:
                failed += 1
                print(f"{target}: {one!r}\n{traceback.format_exc()}", file=sys.stderr)
        print(f"{target}: {len(inputs)} inputs")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
