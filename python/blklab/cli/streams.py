"""Standard output and standard error: whatever is printed, no control character reaches a
terminal, and no encoding raises an error.

Names of jobs, disks and files, kept results and other programs' words come from documents that
anybody may have written. Python's own streams pass their escape codes on, and raise
UnicodeEncodeError where the locale cannot write a letter.
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
        """As it is: for rich, which has made its texts harmless before it styled them."""
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

    Of a descriptor that the caller has closed (``>&-``) the number would go to the next file that
    is opened, and what is printed would be written into that file.
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
            # Or it would close the other's buffer with its own.
            with contextlib.suppress(OSError):
                stream.detach()


def styled(stream: Any) -> IO[str]:
    """Where a rich console has to write to reach `stream`."""
    return cast(IO[str], Styled(stream) if isinstance(stream, Harmless) else stream)


def tell(text: str) -> None:
    """On standard error, lines and all, even if that cannot be written to."""
    encoding = sys.stderr.encoding or "utf-8"
    with contextlib.suppress(OSError):
        os.write(STDERR, harmless(f"{text}\n").encode(encoding, "backslashreplace"))


def write_bytes(content: bytes) -> None:
    """A document as it is on standard output; harmless on a terminal."""
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
