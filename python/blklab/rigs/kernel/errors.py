"""Errors of kernels: one line, and the kernel's own messages above it."""

from __future__ import annotations

from collections.abc import Sequence

from blklab.errors import RunError


class KernelError(RunError):
    """A source, a build or a guest failed."""

    def __init__(self, message: str, detail: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.detail = tuple(detail)
        """The last output of make, patch or the guest; printed above the message."""


class GuestPanicError(KernelError):
    """The guest's kernel panicked or died."""


class GuestMemoryError(GuestPanicError):
    """The guest ran out of memory, at the point where Linux would begin to kill processes."""


class GuestTimeoutError(KernelError):
    """The guest did not end within its limit of wall time."""
