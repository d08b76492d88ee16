"""The layers of the package match CONTRIBUTING.md, and a wrong import is detected."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "python/blklab"
CONTRACTS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"][
    "importlinter"
]["contracts"]


def rows() -> list[list[str]]:
    """The names in the first column of the map, row by row."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    table = text.split("| `python/blklab/` |")[1].split("\n\n")[0]
    return [re.findall(r"`([^`]+)`", row.split("|")[1]) for row in table.splitlines()[2:]]


def test_the_map_names_every_package_and_module_and_no_other() -> None:
    there = {
        f"{path.name}/" if path.is_dir() else path.name
        for path in PACKAGE.iterdir()
        if path.name not in ("__init__.py", "__pycache__", "bin") and path.suffix in ("", ".py")
    }
    named = [name for row in rows() for name in row]
    assert sorted(named) == sorted(there)


def test_the_map_has_the_order_that_is_checked() -> None:
    [layers] = [one["layers"] for one in CONTRACTS if one["id"] == "layers"]
    places = {
        name.strip(): height for height, names in enumerate(layers) for name in names.split("|")
    }
    order = [places[name.rstrip("/").removesuffix(".py")] for row in rows() for name in row]
    assert order == sorted(order)
    assert len(order) == len(places)


def check(tree: Path) -> subprocess.CompletedProcess[str]:
    """The check of `make check`, on a copy of the package."""
    return subprocess.run(
        [Path(sys.executable).with_name("lint-imports"), "--no-cache", "--no-logo"],
        cwd=tree,
        env=os.environ | {"PYTHONPATH": str(tree)},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A copy of the package's source, and of the contracts."""
    only = shutil.ignore_patterns("__pycache__", "bin", "*.so", "*.toml", "*.fio")
    shutil.copytree(PACKAGE, tmp_path / "blklab", ignore=only)
    shutil.copy2(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def test_the_source_keeps_all_contracts(tree: Path) -> None:
    done = check(tree)
    assert done.returncode == 0, done.stdout
    assert f"Contracts: {len(CONTRACTS)} kept, 0 broken." in done.stdout


def test_each_contract_finds_an_import_that_breaks_it(tree: Path) -> None:
    planted = {
        # Inside a function, for a type, and as usual.
        "domain/result.py": "def _planted() -> None:\n    from blklab.rigs import sim\n",
        "execute.py": "if TYPE_CHECKING:\n    from blklab.store import keep\n",
        "rigs/live/rig.py": "from blklab.rigs.kernel import view\n",
        "host/udev/node.py": "from blklab.host.devices import mounts\n",
        "store/packing.py": "from blklab.store import keep\n",
        "cli/rights.py": "if TYPE_CHECKING:\n    from blklab.store import keep\n",
    }
    for name, line in planted.items():
        with (tree / "blklab" / name).open("a", encoding="utf-8") as file:
            file.write(line)
    done = check(tree)
    assert done.returncode == 1
    assert f"Contracts: 0 kept, {len(CONTRACTS)} broken." in done.stdout
    for broken in (
        "blklab.domain is not allowed to import blklab.rigs",
        "blklab.execute is not allowed to import blklab.store",
        "blklab.rigs.live is not allowed to import blklab.rigs.kernel",
        "blklab.host.udev is not allowed to import blklab.host.devices",
        "No cycles are allowed in blklab.store",
        "blklab.cli is not allowed to import blklab.store",
    ):
        assert broken in done.stdout, broken


def test_each_file_with_imports_inside_functions_states_their_saving() -> None:
    lines = (ROOT / "pyproject.toml").read_text(encoding="utf-8").splitlines()
    allowed = [
        place
        for place, line in enumerate(lines)
        if line.startswith('"python/') and "PLC0415" in line
    ]
    assert allowed
    for place in allowed:
        assert re.match(r"# .*\d", lines[place - 1]), lines[place]
