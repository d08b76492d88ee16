"""Standard output and standard error: no printed text sends a control character to a terminal, and
no encoding raises an error.

Names of jobs, disks and files, stored results and other programs' output come from untrusted
documents. Python's own streams pass their escape codes on, and raise UnicodeEncodeError where the
locale cannot write a letter.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
from collections.abc import Iterator
from typing import IO, Any, cast

from blklab.base.text import harmless

STDOUT, STDERR = 1, 2


class Harmless(io.TextIOWrapper):
    """Writes text with all control characters but line ends and tabulators as ``\\x1b``."""

    def write(self, text: str, /) -> int:
        """See `io.TextIOBase`."""
        super().write(harmless(text))
        return len(text)

    def write_styled(self, text: str) -> int:
        """Writes the text unchanged: for rich, which has made its texts harmless before styling
        them."""
        return super().write(text)


class Styled:
    """The file that a rich console writes to."""

    def __init__(self, stream: Harmless) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """See `Harmless.write_styled`."""
        return self._stream.write_styled(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextlib.contextmanager
def installed() -> Iterator[None]:
    """Meanwhile `sys.stdout` and `sys.stderr` are harmless, and the descriptors 0, 1 and 2 open.

    If the caller has closed a descriptor (``>&-``), the next opened file would get its number, and
    printed text would go into that file.
    """
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    before = sys.stdout, sys.stderr
    ours = _harmless(sys.stdout, STDOUT), _harmless(sys.stderr, STDERR)
    sys.stdout, sys.stderr = ours
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before
        for stream in ours:
            # Otherwise it would close the other stream's buffer with its own.
            with contextlib.suppress(OSError):
                stream.detach()


def styled(stream: Any) -> IO[str]:
    """The file to which a rich console writes to reach `stream`."""
    return cast(IO[str], Styled(stream) if isinstance(stream, Harmless) else stream)


def tell(text: str) -> None:
    """Prints on standard error with all lines, and ignores a failure to write there."""
    encoding = sys.stderr.encoding or "utf-8"
    with contextlib.suppress(OSError):
        os.write(STDERR, harmless(f"{text}\n").encode(encoding, "backslashreplace"))


def write_bytes(content: bytes) -> None:
    """Prints a document unchanged on standard output; without control characters on a terminal."""
    sys.stdout.flush()
    if sys.stdout.isatty():
        sys.stdout.write(content.decode(errors="surrogateescape"))
    else:
        sys.stdout.buffer.write(content)


def _harmless(stream: Any, number: int) -> Harmless:
    # Python has no stream where the descriptor was closed when it started.
    binary = stream.buffer if stream else os.fdopen(number, "wb", closefd=False)
    return Harmless(
        binary,
        encoding=stream.encoding if stream else "utf-8",
        errors="backslashreplace",
        line_buffering=bool(stream and stream.line_buffering),
        write_through=bool(stream and stream.write_through),
    )
