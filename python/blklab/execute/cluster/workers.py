"""The workers that may run: those with this code, and able to do it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from distributed import Client

from blklab.errors import MachineError
from blklab.execute.cluster import worker
from blklab.execute.identity import Identity, identity

_NO_BLKLAB = "No module named 'blklab"


@dataclass
class Workers:
    """Those of a cluster, as far as they are known."""

    tell: Callable[[str], None]
    """Receives a line about each worker that is refused."""
    threads: dict[str, int] = field(default_factory=dict)
    """Those that may run, by address, each with its number of threads."""
    refused: dict[str, str] = field(default_factory=dict)
    """The reason for each other worker, by address."""
    silent: set[str] = field(default_factory=set)
    """Those that are there and have not answered yet, as on a busy machine."""

    @property
    def allowed(self) -> list[str]:
        """The addresses of those that may run."""
        return sorted(self.threads)

    def look(self, client: Client) -> None:
        """Learn of workers that have come or gone. OSError if the scheduler is lost."""
        there = client.scheduler_info()["workers"]
        for gone in [address for address in self.threads if address not in there]:
            del self.threads[gone]
        new = [one for one in there if one not in self.threads and one not in self.refused]
        answers = _examine(client, new)
        self.silent = {address for address, found in answers.items() if found is None}
        for address, found in answers.items():
            if found is None:
                continue
            name = f"worker {there[address]['name']} ({address})"
            if not found:
                self.threads[address] = int(there[address]["nthreads"])
            else:
                self.refuse(address, f"{name} {found}")

    def refuse(self, address: str, reason: str) -> None:
        """It runs nothing more for this call."""
        self.threads.pop(address, None)
        if address not in self.refused:
            self.refused[address] = reason
            self.tell(f"{reason}; its runs go to other workers")

    def check(self, name: str) -> None:
        """MachineError if every worker is refused."""
        if not self.threads and not self.silent and self.refused:
            reasons = list(dict.fromkeys(self.refused.values()))
            more = f" ({len(reasons) - 1} more like it)" if len(reasons) > 1 else ""
            raise MachineError(f"--on: {name}: no worker can run this: {reasons[0]}{more}")


def _examine(client: Client, addresses: Iterable[str]) -> dict[str, str | None]:
    """For each what is wrong with it: empty if nothing is; None if it does not answer."""
    asked = list(addresses)
    if not asked:
        return {}
    answers = client.run(worker.examined, workers=asked, on_error="return")
    return {address: _wrong(answers.get(address)) for address in asked}


def _wrong(answer: object) -> str | None:
    if isinstance(answer, ImportError) or _NO_BLKLAB in str(answer):
        return "has no blklab, or an older one; install the same version there"
    if isinstance(answer, Identity):
        differs = answer.difference(identity())
        return f"has another version: {differs}; install the same there" if differs else ""
    if isinstance(answer, OSError):
        return None
    return f"cannot run blklab: {answer}"
