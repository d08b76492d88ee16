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


def table(of: str) -> list[list[str]]:
    """The cells of the map's table whose first column has that heading, row by row."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    lines = text.split(f"\n| `{of}` |")[1].split("\n\n")[0].splitlines()[2:]
    return [line.split("|")[1:-1] for line in lines]


def names(cell: str) -> list[str]:
    """The modules that a cell names."""
    return re.findall(r"`([^`]+)`", cell)


def rows() -> list[list[str]]:
    """The names in the first column of the map of Python, row by row."""
    return [names(row[0]) for row in table("python/blklab/")]


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
        "execute/local.py": "if TYPE_CHECKING:\n    from blklab.store import keep\n",
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


def without_tests(text: str) -> str:
    """Rust source, as rustfmt lays it out, without comments and items of `#[cfg(test)]`."""
    kept = []
    lines = iter(text.splitlines())
    for line in lines:
        if line.strip() != "#[cfg(test)]":
            kept.append(re.sub(r"(^|\s)//.*", "", line))
            continue
        indent = line.removesuffix("#[cfg(test)]")
        for item in lines:
            is_attribute = item.lstrip().startswith("#[")
            is_whole = item.startswith(f"{indent}}}") or item.endswith((";", "}"))
            if is_whole and not is_attribute and not item.startswith(f"{indent} "):
                break
    return "\n".join(kept)


def paths(source: str, depth: int) -> set[str]:
    """The first names of paths that begin at the crate's root, in a module that deep below it."""
    root = rf"\b(?:crate::|(?:super::){{{depth}}}(?!super))"
    found = set(re.findall(rf"{root}(\w+)", source))
    for group in re.findall(rf"{root}\{{([^;]*)\}};", source):
        flat = group
        while "{" in flat:
            flat = re.sub(r"\{[^{}]*\}", "", flat)
        found |= {path.split("::")[0].strip() for path in flat.split(",")}
    return found - {""}


# A module of tests in a file of its own; by path, if it is not below the module it tests.
TEST_FILE = r"#\[cfg\(test\)\]\s+(?:#\[path = \"(\w+)\.rs\"\]\s+)?(?:pub(?:\(\w+\))? )?mod (\w+);"


def imports(source: Path) -> dict[str, set[str]]:
    """What each module at the root of a crate imports from the others; their tests do not count."""
    tests = {
        (file.parent if path or file.stem in ("mod", "lib") else file.with_suffix("")) / module
        for file in source.rglob("*.rs")
        for path, name in re.findall(TEST_FILE, file.read_text(encoding="utf-8"))
        for module in [path or name]
    }
    found: dict[str, set[str]] = {}
    for file in sorted(source.rglob("*.rs")):
        place = file.with_suffix("")
        if place.name == "lib" or tests & {place, *place.parents}:
            continue
        within = place.relative_to(source).parts
        within = within[:-1] if within[-1] == "mod" else within
        used = paths(without_tests(file.read_text(encoding="utf-8")), len(within))
        found.setdefault(within[0], set()).update(used - {within[0]})
    return found


def cycle(graph: dict[str, set[str]]) -> list[str]:
    """Modules that import each other in a circle, if there are any."""
    left = dict(graph)
    while free := [module for module, used in left.items() if not used & left.keys()]:
        for module in free:
            del left[module]
    return sorted(left)


def against_the_map(source: Path) -> list[str]:
    """Differences between the map and the modules of the simulator's crate in `source`."""
    # `pub use` at the root: other crates' modules under a short name.
    others = ",".join(
        re.findall(r"^pub use (blklab_base.*);", (source / "lib.rs").read_text(), re.M)
    )
    always = set(re.findall(r"\w+", others))
    there = imports(source)
    mapped = table("crates/blklab-core/src/")
    order = [re.split(r"[/.]", name)[0] for row in mapped for name in names(row[0])]
    wrong = [f"not in the map, or not in the tree: {name}" for name in set(order) ^ set(there)]
    wrong += [f"more than once in the map: {name}" for name in order if order.count(name) > 1]
    for row in mapped:
        for module in (re.split(r"[/.]", name)[0] for name in names(row[0])):
            below = {*order[order.index(module) + 1 :], "disk"}
            allowed = below if row[2].strip() == "all below" else below & set(names(row[2]))
            used = there.get(module, set()) - always
            wrong += [f"{module} imports {name}" for name in sorted(used - allowed)]
        needless = set(names(row[2])).difference(
            *(there.get(re.split(r"[/.]", name)[0], set()) for name in names(row[0]))
        )
        wrong += [f"no import of {name} in {row[0].strip()}" for name in sorted(needless)]
    return wrong + [f"in a cycle: {name}" for name in cycle(there)]


SIMULATOR = ROOT / "crates/blklab-core/src"


def test_the_modules_of_the_simulator_import_what_the_map_allows() -> None:
    there = imports(SIMULATOR)
    assert {"pagecache", "scheduler", "disk", "units"} <= there["engine"]
    assert "formats" in there["simulation"]
    assert against_the_map(SIMULATOR) == []


def test_each_wrong_import_of_a_rust_module_is_found(tmp_path: Path) -> None:
    source = tmp_path / "src"
    shutil.copytree(SIMULATOR, source)
    for name, text in {
        "request.rs": "use crate::pagecache::BackingId;\n",
        "scheduler/cfq/parts/slice.rs": "fn planted() { crate::host::Host::settings(); }\n",
        "host/cpus.rs": "use super::super::{units::Bytes, engine::{self, Machine}, recorder};\n",
        "decisions.rs": "#[cfg(test)]\nmod planted {\n    use crate::simulation;\n}\n"
        "#[cfg(test)]\nuse crate::engine;\nuse super::stats;\n",
        "pagecache/tests/model.rs": "use crate::simulation;\n",
        "planted.rs": "// use crate::simulation;\n",
    }.items():
        with (source / name).open("a", encoding="utf-8") as file:
            file.write(text)
    in_cycle = {"containers", "decisions", "host", "pagecache", "request", "scheduler", "stats"}
    wrong = against_the_map(source)
    assert {line for line in wrong if not line.startswith("in a cycle")} == {
        "request imports pagecache",
        "scheduler imports host",
        "host imports engine",
        "host imports recorder",
        "decisions imports stats",
        "not in the map, or not in the tree: planted",
    }
    assert in_cycle <= {line.removeprefix("in a cycle: ") for line in wrong}


def test_the_crates_import_what_the_map_allows() -> None:
    mapped = table("crates/")
    crates = [names(row[0])[0].rstrip("/") for row in mapped]
    assert sorted(crates) == sorted(path.parent.name for path in ROOT.glob("crates/*/Cargo.toml"))
    for place, (crate, row) in enumerate(zip(crates, mapped, strict=True)):
        manifest = tomllib.loads(
            (ROOT / "crates" / crate / "Cargo.toml").read_text(encoding="utf-8")
        )
        used = {name for name in manifest["dependencies"] if name.startswith("blklab-")}
        assert used == set(names(row[2])) <= set(crates[place + 1 :]), crate


@pytest.mark.parametrize("crate", sorted(path.name for path in ROOT.glob("crates/*")))
def test_no_modules_of_a_crate_import_each_other_in_a_cycle(crate: str) -> None:
    assert cycle(imports(ROOT / "crates" / crate / "src")) == []


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


@pytest.mark.skipif(shutil.which("cargo") is None, reason="needs cargo")
def test_the_core_is_compiled_once_for_all_that_is_built_with_it() -> None:
    """Cargo compiles a crate again where a dependency has other features. crates/blklab-base has
    what the others would lack."""

    def features(*selection: str) -> dict[str, str]:
        tree = ["cargo", "tree", "--locked", "--prefix", "none", "--format", "{p}|{f}"]
        printed = subprocess.run(
            [*tree, "--edges", "normal,build", *selection],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        rows = (line.removesuffix(" (*)").partition("|") for line in printed.splitlines())
        return {package: of for package, _, of in rows}

    of_core = features("--package", "blklab-core")
    programs = re.findall(r"^PROGRAMS := (.+)$", (ROOT / "Makefile").read_text(), re.M)[0].split()
    for others in (
        ["--package", "blklab-py", "--features", "pyo3/extension-module"],
        [word for program in programs for word in ("--package", program)],
        ["--workspace"],
    ):
        found = features(*others)
        assert {package: found[package] for package in of_core} == of_core, others
