"""README.md, its picture, the pages and the examples agree with the program.

The pages themselves are built, and their examples run, by ``make docs``.
"""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import subprocess
import sys
from doctest import DocTestParser
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from mkdocs.utils.yaml import yaml_load

import blklab
import filled
import kernel_rig
import pictures
import timelines
from blklab import _core

ROOT = Path(__file__).resolve().parents[1]
PAGES = [
    *ROOT.glob("*.md"),
    *(ROOT / "docs").rglob("*.md"),
    *(ROOT / "examples").glob("*.md"),
]


def test_the_readmes_outputs_are_those_of_its_commands() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert filled.filled(text) == text, "run: .venv/bin/python docs/filled.py README.md"


def test_the_readmes_picture_is_its_commands_output() -> None:
    kept = (ROOT / "docs/images/disk-position.svg").read_text(encoding="utf-8")
    assert pictures.picture("disk-position") == kept, (
        "run: .venv/bin/python docs/pictures.py docs/images/disk-position.svg"
    )
    assert len(kept) < 20_000


@pytest.mark.parametrize("name", timelines.PICTURES)
def test_a_timeline_in_the_docs_is_its_commands_output(name: str) -> None:
    kept = (timelines.IMAGES / f"{name}.svg").read_text(encoding="utf-8")
    assert timelines.picture(name) == kept, "run: .venv/bin/python docs/timelines.py"
    assert len(kept) < 30_000


def test_the_kernel_rigs_examples_are_kept_with_the_commands_that_make_them() -> None:
    kept = json.loads((ROOT / "docs/data/kernel-rig.json").read_text(encoding="utf-8"))
    remake = "run: .venv/bin/python benches/kernel_rig.py --out docs/data/kernel-rig.json"
    assert kept["files"] == kernel_rig.FILES, remake
    assert {
        name: tuple(step["command"] for step in steps) for name, steps in kept["examples"].items()
    } == {name: example.commands for name, example in kernel_rig.EXAMPLES.items()}, remake
    assert all(step["output"] for steps in kept["examples"].values() for step in steps)
    text = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    shown = re.findall(r"<!-- generate: kernel_rig_example (\S+) -->", text)
    assert sorted(shown) == sorted(kernel_rig.EXAMPLES)


def test_the_notebook_page_uses_nothing_but_the_public_functions() -> None:
    page = (ROOT / "docs/notebook.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```(\w*)[^\n]*\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert {kind for kind, _ in blocks} == {"pycon"}
    examples = [one.source for _, body in blocks for one in DocTestParser().get_examples(body)]
    nodes = [node for source in examples for node in ast.walk(ast.parse(source))]
    imports = [node for node in nodes if isinstance(node, (ast.Import, ast.ImportFrom))]
    assert [ast.unparse(node) for node in imports] == ["import blklab"]
    used = {
        node.attr
        for node in nodes
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "blklab"
    }
    assert {"compare", "explain", "find_disk", "results"} <= used <= set(blklab.__all__)
    shown = filled.filled(page)
    # Its lines about the answer and the store.
    assert ">>> verdict.winner\n'bfq'\n" in shown
    assert "results.runs == found.results.runs\nTrue\n" in shown


def test_an_example_that_ends_otherwise_than_its_page_says_is_an_error() -> None:
    filled.filled("```console exit=3\n$ true\n$ exit 3\n```")
    for wrong in (
        "```console\n$ exit 3\n```",
        "```console exit=3\n$ true\n```",
        "```console exit=3\n$ exit 3\n$ exit 3\n```",
        "```console frist=3\n$ true\n```",
        "```pycon\n>>> 1 / 0\n```",
    ):
        with pytest.raises(filled.ExampleError):
            filled.filled(wrong)


def test_examples_are_filled_shortened_and_keep_their_state() -> None:
    text = (
        "```console first=1 last=1\n$ seq 9 > nine; cat \\\n    nine\nstale\n```\n"
        "```pycon\n>>> a = 2\n```\n```pycon\n>>> a * 3\nstale\n>>> open('nine').read()[:1]\n```\n"
    )
    done = filled.filled(text)
    assert "$ seq 9 > nine; cat \\\n    nine\n1\n...\n9\n```" in done
    assert ">>> a * 3\n6\n>>> open('nine').read()[:1]\n'1'\n```" in done
    assert filled.filled(done) == done


@pytest.mark.parametrize(
    ("text", "good"),
    [
        ("[b](b.md#b)", True),
        ("[b](c.md)", False),
        ("[b](b.md#c)", False),
        ("[b](/b.md)", False),
        ("![b](c.svg)", False),
    ],
)
def test_make_docs_fails_on_a_link_that_leads_nowhere(
    text: str, good: bool, tmp_path: Path
) -> None:
    [options] = re.findall(r"mkdocs build(.*)", (ROOT / "Makefile").read_text(encoding="utf-8"))
    ours = yaml_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    config = {"site_name": "tried", "validation": ours["validation"]}
    (tmp_path / "mkdocs.yml").write_text(json.dumps(config), encoding="utf-8")
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/index.md").write_text(f"# A\n\n{text}\n", encoding="utf-8")
    (tmp_path / "docs/b.md").write_text("# B\n", encoding="utf-8")
    command = [sys.executable, "-m", "mkdocs", "build", *options.split()]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode == 0) == good, done.stderr


def test_links_of_files_that_are_read_in_the_repository_lead_somewhere() -> None:
    for page in [*ROOT.glob("*.md"), *(ROOT / "examples").glob("*.md")]:
        for target in links(page):
            if not urlsplit(target).scheme and not target.startswith("#"):
                assert (page.parent / target.partition("#")[0]).is_file(), f"{page}: {target}"


def test_the_tests_that_hold_a_promise_exist() -> None:
    sources = [*ROOT.glob("tests/**/*.py"), *ROOT.glob("crates/**/*.rs")]
    known = {file.stem for file in sources}
    for file in sources:
        known.update(re.findall(r"(?:def|fn) (\w+)", file.read_text(encoding="utf-8")))
    known |= {name.removeprefix("test_") for name in known}
    promises = sorted((ROOT / "docs/internals").glob("promises-*.md"))
    assert len(promises) == 4
    for page in promises:
        text = page.read_text(encoding="utf-8")
        named = re.findall(r"`(?:tests/)?(test_\w+)(?:\.py)?`", text) + re.findall(r"::(\w+)", text)
        # In parentheses after a file: names of tests, which have three words or more.
        for several in re.findall(r"\(([a-z0-9_, ]+)\)", text):
            named += [name for name in several.split(", ") if name.count("_") > 2]
        assert len(named) >= 20, page
        missing = [name for name in named if name not in known and not name.endswith("_")]
        assert not missing, (page.name, missing)


def test_the_files_that_the_notes_for_developers_name_exist() -> None:
    listed = ("git", "ls-files", "--cached", "--others", "--exclude-standard")
    tree = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    # A note may name the end of a path, as long as it is whole: `hdd/arm.rs`.
    ends = {
        file[start:]
        for file in tree.split()
        for start in [0, *(at.end() for at in re.finditer("/", file))]
    }
    missing, seen = [], 0
    for page in sorted((ROOT / "docs/internals").glob("*.md")):
        text = page.read_text(encoding="utf-8")
        for name in re.findall(r"`([\w./{},-]+\.(?:py|pyi|rs|toml|md|sh))(?:::?\w+)?`", text):
            before, _, rest = name.partition("{")
            several, _, after = rest.partition("}")
            files = [f"{before}{one}{after}" for one in several.split(",")] if rest else [name]
            seen += len(files)
            missing += [(page.name, file) for file in files if file not in ends]
    assert seen > 200
    assert not missing


def test_links_to_elsewhere_are_well_formed() -> None:
    for page in PAGES:
        for target in links(page):
            parts = urlsplit(target)
            if parts.scheme:
                assert parts.scheme == "https", f"{page}: {target}"
                assert re.fullmatch(r"([a-z0-9-]+\.)+[a-z]+", parts.netloc), f"{page}: {target}"


def links(page: Path) -> list[str]:
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    return re.findall(r"\]\(([^)\s]+)\)", text) + re.findall(r'src="([^"]+)"', text)


def test_the_examples_behave_as_documented(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    text = (ROOT / "examples/README.md").read_text(encoding="utf-8")
    [block] = re.findall(r"```sh\n(.*?)```", text, re.DOTALL)
    for command in block.splitlines():
        subprocess.run(
            command.split(),
            cwd=tmp_path,
            env=os.environ
            | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"},
            check=True,
            stdout=subprocess.DEVNULL,
        )
    assert "plotly" in (tmp_path / "latencies.html").read_text(encoding="utf-8")
    results = json.loads((tmp_path / "reports/compare/results.json").read_text(encoding="utf-8"))
    assert [disk["label"] for disk in results["setup"]["disks"]] == ["laptop"]
    assert {file.name for file in (ROOT / "examples").iterdir()} - set(text.split("`")) == {
        "README.md"
    }


def test_the_examples_disk_gives_its_published_figures() -> None:
    disk = (ROOT / "examples/laptop.toml").read_text(encoding="utf-8")
    for row in _core.Disk(disk, "laptop.toml").validate():
        assert row.met, row.figure


@pytest.mark.skipif(shutil.which("fio") is None, reason="needs fio")
def test_fio_accepts_the_examples_load() -> None:
    subprocess.run(["fio", "--parse-only", str(ROOT / "examples/mail-server.fio")], check=True)
