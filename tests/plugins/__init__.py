"""Plug-ins for tests: each a crate, compiled when a test needs it."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
_TARGET = "wasm32-unknown-unknown"


def missing() -> str:
    """Why plug-ins cannot be compiled here; else empty."""
    if shutil.which("cargo") is None or shutil.which("rustc") is None:
        return "needs cargo and rustc"
    asked = ["rustc", "--print", "target-libdir", "--target", _TARGET]
    found = subprocess.run(asked, capture_output=True, text=True, check=False)
    if found.returncode != 0 or not Path(found.stdout.strip()).is_dir():
        return f"needs Rust's library for {_TARGET}: rustup target add {_TARGET}"
    return ""


def built(crate: Path) -> Path:
    """The plug-in of a crate; skips the test where it cannot be compiled."""
    if why := missing():
        pytest.skip(why)
    target = ROOT / "target/plugins"
    made = subprocess.run(
        ["cargo", "build", "--quiet", "--release", "--target", _TARGET],
        cwd=crate,
        env={**os.environ, "CARGO_TARGET_DIR": str(target)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert made.returncode == 0, made.stderr
    name = crate.name if crate.name.endswith("-plugin") else f"{crate.name}-plugin"
    return target / _TARGET / "release" / f"{name.replace('-', '_')}.wasm"


def of_tests(name: str) -> Path:
    """One of those here."""
    return built(ROOT / "tests/plugins" / name)


def example() -> Path:
    """The one of the documentation."""
    return built(ROOT / "examples/sstf-plugin")
