"""One target under Atheris, which is LLVM's fuzzer with Python's coverage: NAME [OPTION...] [DIR].

The options are libFuzzer's.
"""

from __future__ import annotations

import sys
from pathlib import Path

import atheris

sys.path.insert(0, str(Path(__file__).parent))
with atheris.instrument_imports(include=["blklab", "tomllib"], enable_loader_override=False):
    from blklab_fuzz.targets import TARGETS

if __name__ == "__main__":
    name = sys.argv.pop(1)
    atheris.Setup(sys.argv, TARGETS[name])
    atheris.Fuzz()
