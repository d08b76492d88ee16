"""Figures of io.cost: parsed, made into a disk, and measured on one."""

from __future__ import annotations

import tomllib
from dataclasses import asdict
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import blklab
from blklab.api.iocost_disk import TOLERANCE
from blklab.cli import app
from blklab.domain.iocost import NAMES, IoCost, parse
from blklab.errors import InputError

FIGURES = IoCost(
    rbps=571_977_404,
    rseqiops=94_009,
    rrandiops=98_549,
    wbps=377_003_734,
    wseqiops=91_213,
    wrandiops=87_471,
)
PAIRS = " ".join(f"{name}={value}" for name, value in asdict(FIGURES).items())
HEAD = "model,size_bytes,rbps,rseqiops,rrandiops,wbps,wseqiops,wrandiops,rlat_p95_us"
ROW = f"Some SSD,250059350016,{','.join(map(str, asdict(FIGURES).values()))},36372"


@pytest.mark.parametrize(
    "text",
    [
        PAIRS,
        f"8:0 ctrl=user model=linear {PAIRS}\n",
        f"IOCOST_MODEL_NAIVE={PAIRS}",
        f"  IOCOST_MODELS={PAIRS}",
        f"{HEAD}\n{ROW}\n",
    ],
)
def test_figures_are_read_in_every_form_in_which_they_are_passed_on(text: str) -> None:
    assert parse(text).figures == FIGURES


def test_a_written_line_is_read_again() -> None:
    line = FIGURES.model_line("259:0")
    assert line.startswith("259:0 ctrl=user model=linear rbps=571977404 ")
    assert parse(line).figures == FIGURES


def test_a_table_tells_model_size_and_latency() -> None:
    other = ROW.replace("Some SSD", "Other SSD")
    found = parse(f"{HEAD}\n{other}\n{ROW}\n", model="Some SSD")
    assert (found.model, found.size_bytes) == ("Some SSD", 250059350016)
    assert found.rlat_p95_us == 36372


@pytest.mark.parametrize(
    ("text", "model", "line"),
    [
        ("", None, "no figures; expected a line with rbps=... to wrandiops=..."),
        ("rbps=1", None, "rseqiops is missing; expected rbps, rseqiops, rrandiops,"),
        (PAIRS.replace("wbps", "wbpz"), None, "unknown key 'wbpz'; did you mean 'wbps'?"),
        (f"{PAIRS} rbps=2", None, "rbps is given twice"),
        (f"{PAIRS} what", None, "expected key=value, found 'what'"),
        (f"model=bpf {PAIRS}", None, "model: found 'bpf'; only linear is known"),
        (PAIRS.replace("=94009", "=-3"), None, "rseqiops: found '-3'; expected a whole number"),
        (PAIRS.replace("=94009", "=0"), None, "rseqiops: found '0'; expected a whole number"),
        (PAIRS.replace("=94009", "=9" + 30 * "9"), None, "rseqiops: found '9"),
        (f"{PAIRS}\n{PAIRS}", None, "found 2 lines; expected one, or a table in CSV"),
        (PAIRS, "A", "--model 'A' chooses a row of a table, not of a line"),
        (f"{HEAD}\n{ROW}\n{ROW}", None, "the table has 2 rows; choose one with --model NAME"),
        (f"{HEAD}\n{ROW}", "Some SDD", "the table has no model 'Some SDD'; did you mean"),
        ("a,b\n1,2", None, "the table's first row has no column rbps"),
        (f"{HEAD}\n{ROW.replace('250059350016', '12x')}", None, "size_bytes: found '12x'"),
    ],
)
def test_text_without_figures_of_io_cost_is_refused_in_one_line(
    text: str, model: str | None, line: str
) -> None:
    with pytest.raises(InputError) as refused:
        parse(text, model=model)
    assert str(refused.value).startswith(f"io.cost: {line}")
    assert "\n" not in str(refused.value)


@given(st.text(alphabet="rbpsw=,0129 \n:-\0ä", max_size=80))
def test_any_text_is_read_or_refused_in_one_line(text: str) -> None:
    try:
        parse(text)
    except InputError as refused:
        assert "\n" not in str(refused)


@pytest.mark.parametrize(
    ("changed", "line"),
    [
        ({"rrandiops": 370}, "rrandiops=370: a hard disk's; expected 1000 or more"),
        ({"rbps": 10_000_000}, "rseqiops=94009 and rbps=10000000 contradict each other: so many"),
        ({"wseqiops": 20}, "wseqiops=20 and wbps=377003734 contradict each other: so many req"),
        ({"rrandiops": 1500}, "rrandiops=1500 and rbps=571977404 contradict each other: so many"),
    ],
)
def test_figures_that_no_disk_can_have_are_refused(changed: dict[str, int], line: str) -> None:
    with pytest.raises(InputError) as refused:
        blklab.disk_from_io_cost(IoCost(**{**asdict(FIGURES), **changed}).model_line())
    assert str(refused.value).startswith(f"io.cost: {line}")


def log_uniform(low: float, high: float) -> st.SearchStrategy[int]:
    return st.floats(0, 1).map(lambda share: int(low * (high / low) ** share))


@st.composite
def plausible(draw: st.DrawFn) -> IoCost:
    """From a slow SATA disk to a fast NVMe disk; with 4 KiB writes quicker than streams, too."""
    rbps, wbps = draw(log_uniform(3e8, 7e9)), draw(log_uniform(5e7, 4e9))
    return IoCost(
        rbps=rbps,
        rseqiops=draw(log_uniform(20_000, min(6e5, 1.2 * rbps / 4096))),
        rrandiops=draw(log_uniform(max(15_000, rbps / 3e5), max(25_000, min(6e5, rbps / 4096)))),
        wbps=wbps,
        wseqiops=draw(log_uniform(5_000, min(4e5, 3 * wbps / 4096))),
        wrandiops=draw(log_uniform(5_000, min(4e5, 3 * wbps / 4096))),
    )


@settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck))
@given(plausible())
def test_a_disk_made_from_figures_has_them_all(figures: IoCost) -> None:
    made = blklab.disk_from_io_cost(figures.model_line())
    assert made.off == {}, made.text
    # Measured again, with another seed.
    path = Path("made.toml")
    path.write_text(made.text, encoding="utf-8")
    again = blklab.io_cost(path, seconds=1.0, seed=7)
    for name in NAMES:
        found, told = getattr(again, name), getattr(figures, name)
        assert abs(found / told - 1) <= 1.5 * TOLERANCE, f"{name}: {found}, told {told}"


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def blklab_says(*words: str, stdin: str | None = None) -> tuple[int, str]:
    run = CliRunner().invoke(app, list(words), input=stdin)
    if isinstance(run.exception, InputError):
        return run.exception.exit_code, str(run.exception)
    return run.exit_code, run.output


def test_from_iocost_writes_a_file_that_says_how_each_parameter_follows(tmp_path: Path) -> None:
    out = tmp_path / "mine.toml"
    code, said = blklab_says("disks", "from-iocost", PAIRS, "--name", "Mine", "--out", str(out))
    assert (code, "mine.toml; to use it" in said) == (0, True)
    text = out.read_text()
    keys = tomllib.loads(text)
    assert (keys["name"], keys["transport"], keys["queue_depth"]) == ("Mine", "sata", 32)
    told = [line for line in text.splitlines() if " = " in line and not line.startswith("#")]
    named = ("kind", "name", "summary", "transport")
    assert all("  # " in line for line in told if line.split(" = ")[0] not in named)
    assert f"# figures: {PAIRS}" in text
    assert blklab_says("disks", "from-iocost", PAIRS, "--out", str(out)) == (
        2,
        f"{out}: exists already",
    )


def test_a_table_from_a_file_or_from_stdin_gives_name_and_size(tmp_path: Path) -> None:
    table = tmp_path / "table.csv"
    table.write_text(f"{HEAD}\n{ROW}\n")
    from_file = blklab_says("disks", "from-iocost", str(table), "--transport", "nvme")
    from_stdin = blklab_says(
        "disks", "from-iocost", "-", "--transport", "nvme", stdin=table.read_text()
    )
    assert from_file == from_stdin
    keys = tomllib.loads(from_file[1])
    assert (keys["name"], keys["transport"]) == ("Some SSD", "nvme")
    assert keys["capacity_sectors"] == 250059350016 // 512


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["from-iocost", "nowhere.csv"], "nowhere.csv"),
        (["from-iocost", PAIRS, "--transport", "usb"], "transport: found 'usb'; expected sata or"),
        (["iocost", "nothing"], "no disk 'nothing'"),
        (["iocost", "su800-128gb", "--device", "sda"], "device: found 'sda'; expected MAJOR:MIN"),
    ],
)
def test_wrong_arguments_of_iocost_are_one_line(words: list[str], line: str) -> None:
    code, said = blklab_says("disks", *words)
    assert code == 2
    assert said.startswith(line) and "\n" not in said.strip()


def test_iocost_prints_the_lines_for_the_kernel() -> None:
    code, said = blklab_says(
        "disks", "iocost", "su800-128gb", "--qos", "--device", "8:0", "--seconds", "0.2"
    )
    assert code == 0
    model, qos = said.splitlines()
    figures = parse(model).figures
    # ADATA: 560 MB/s, less what one request at a time loses.
    assert 500e6 < figures.rbps <= 560e6
    assert figures.rseqiops > figures.rrandiops / 2
    assert model.startswith("8:0 ctrl=user model=linear rbps=")
    assert qos.startswith("8:0 enable=1 ctrl=user rpct=95.00 rlat=")


def test_a_disks_name_still_stands_for_its_details() -> None:
    assert blklab_says("disks", "su800-128gb") == blklab_says("disks", "show", "su800-128gb")
    assert "su800-128gb" in blklab_says("disks")[1]
    code, said = blklab_says("disks", "--help")
    assert code == 0 and "from-iocost" in said
