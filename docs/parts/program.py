"""The help of the commands, and files of the repository that are pages too."""

from __future__ import annotations

from filled import ROOT
from parts.text import text_of


def commands() -> str:
    """The help of each command, as examples to run."""
    from blklab.cli.lazy import COMMANDS

    names = ["blklab"]
    for name, listed in COMMANDS.items():
        names.append(f"blklab {name}")
        # The commands of a group.
        for part in listed.load().registered_commands:
            assert part.callback is not None
            if (own := part.name or part.callback.__name__) != name:
                names.append(f"blklab {name} {own}")
    parts = [f"```console\n$ {name} --help\n```\n" for name in names]
    for number, name in enumerate(names[1:], 1):
        parts[number] = f"## {name}\n\n{parts[number]}"
    return "\n".join(parts)


def repository_file(name: str) -> str:
    """README.md and its like, with links as the site has them."""
    text = text_of(ROOT / name)
    text = text.replace("](docs/", "](").replace('"docs/images/', '"images/')
    pages = {"README.md": "index.md", "CONTRIBUTING.md": "contributing.md"}
    pages["CHANGELOG.md"] = "changelog.md"
    for file, page in pages.items():
        text = text.replace(f"]({file}", f"]({page}")
    return text
