"""Study files: their meaning, and the refusal of broken ones."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from blklab.base.catalogue import Entry
from blklab.errors import InputError
from blklab.studies import STUDIES
from blklab.study import parse
from blklab.study.places import line_of

TEXT = """\
# a study
title = "one"
question = "does it matter?"
rigs = ["sim", "kernel"]
repeats = 3

[[kernel]]
name = "slow"
patches = [
    "a.patch",
]

[[part]]
name = "first"
disks = ["d"]
workloads = ["w", "v"]
schedulers = ["none", "kyber:read_lat_nsec=1", "kyber@slow"]
host = { cpus = 6 }

[[part.claim]]
kind = "figures"
text = "some"
tolerance_percent = 10
[part.claim.values]
none = [1, 2.5]
"kyber@slow" = 7

[[part.claim]]
kind = "order"
text = "so"
schedulers = ["none", "kyber@slow"]
workloads = ["v"]
metric = "p99_us"

[[part]]
name = "second"
question = "and here?"
disks = ["d"]
workloads = ["w"]
schedulers = ["none"]
rigs = ["kernel"]
repeats = 9
"""


def entry(text: str) -> Entry:
    return Entry("s", Path("s.toml"), text)


def test_parts_inherit_missing_keys_from_the_study() -> None:
    study = parse(entry(TEXT))
    first, second = study.parts
    assert (first.repeats, first.question, first.rigs) == (3, "does it matter?", ("sim", "kernel"))
    assert (second.repeats, second.question, second.rigs) == (9, "and here?", ("kernel",))
    assert first.host == {"cpus": 6}
    figures, order = first.claims
    assert figures.values == {"none": (1.0, 2.5), "kyber@slow": (7.0,)}
    assert (figures.tolerance, figures.workloads, figures.metric) == (0.1, ("w", "v"), "mb_s")
    assert (order.schedulers, order.workloads) == (("none", "kyber@slow"), ("v",))
    assert study.kernels[0].patches == ("a.patch",)


# A change of the text above; the line and words of the error.
BROKEN = [
    ('title = "one"', "", 1, "the key 'title' is missing"),
    ('title = "one"', "title = one", 2, "Invalid value"),
    ('title = "one"', "title = 1", 2, "title: found 1, expected a text"),
    ('title = "one"', 'title = " "', 2, 'title: found " ", expected a text'),
    ('title = "one"', 'titel = "one"', 2, "titel: there is no such key; did you mean 'title'?"),
    ('["sim", "kernel"]', '["sim", "liev"]', 4, "expected a list of some of sim, kernel, live"),
    ("repeats = 3", "repeats = 0", 5, "repeats: found 0, expected a whole number from 1"),
    ("repeats = 3", "repeats = true", 5, "repeats: found true, expected a whole number"),
    ("repeats = 3", "repeats = 3\nrepeats = 4", 6, "Cannot overwrite a value"),
    ('name = "slow"', 'name = "So slow"', 8, "name: found \"So slow\", expected a name of"),
    ('    "a.patch",', '    "a.patch", "a.patch",', 9, "none twice"),
    ('disks = ["d"]\nworkloads = ["w", "v"]', 'workloads = ["w"]', 13,
     "[[part]] the key 'disks' is missing"),
    ('"kyber@slow"]\nhost', '"kyber@slwo"]\nhost', 17, "did you mean 'slow'?"),
    ("cpus = 6 }", 'cpus = 6 }\nkernel = "slwo"', 19,
     "kernel: the study has no [[kernel]] of name 'slwo'; did you mean 'slow'?"),
    ("cpus = 6 }", "cpus = 6 }\nkernel = 1", 19, "kernel: found 1, expected a name of"),
    ('["w", "v"]', '["w:n=4..2", "v"]', 16, "w:n=4..2: n: expected a range that goes up"),
    ('["w", "v"]', '["w:n=1..4", "w:n=2", "v"]', 16, "'w:n=2' is there twice"),
    ("cpus = 6", 'cpus = "6"', 18, 'cpus: found "6", expected a whole number'),
    ('kind = "figures"', 'kind = "figure"', 21, "did you mean 'figures'?"),
    ('kind = "figures"', "", 20, "the key 'kind' is missing; expected one of figures, ratio"),
    ("tolerance_percent = 10", "", 20, "the key 'tolerance_percent' is missing"),
    ("tolerance_percent = 10", "tolerance_percent = -1", 23, "found -1, expected a number of per"),
    ("tolerance_percent = 10", "tolerance_percent = nan", 23, "found nan, expected"),
    ("none = [1, 2.5]", "none = [1, 0]", 25, "none: found [1, 0], expected a number above 0"),
    ("none = [1, 2.5]", "noen = 1", 25, "the part has no 'noen'; did you mean 'none'?"),
    ('schedulers = ["none", "kyber@slow"]\nwork', 'schedulers = ["none"]\nwork', 31,
     'expected at least two schedulers: ["a", "b"]'),
    ('workloads = ["v"]', 'workloads = ["x"]', 32, "the part has no 'x'; there is: v, w"),
    ('metric = "p99_us"', 'metric = "p98_us"', 33, "expected one of mb_s, mib_s, kib_s, iops"),
    ('metric = "p99_us"', "value = 2", 33, "value: there is no such key"),
    ('metric = "p99_us"', 'metric = "jain"\njob = "a"', 34, "job: 'jain' is a figure of all jobs"),
    ('kind = "order"', 'kind = "bound"', 28, "a bound needs the key 'least' or 'most'"),
    ('metric = "p99_us"', 'metric = "pile_ups"', 33,
     "metric: 'pile_ups' may be 0; only a claim of the kind 'bound' has it"),
    ('kind = "order"', 'kind = "bound"\nmost = -1', 30, "most: found -1, expected a number from 0"),
    ('metric = "p99_us"', 'summed = 1', 33, "summed: found 1, expected true or false"),
    ('kind = "order"', 'kind = "difference"', 28, "the key 'value' is missing"),
    ('cpus = 6', 'cpus = 6 }\nweights = { a = 0', 19, "a: found 0, expected a number above 0"),
    ('name = "second"', 'name = "first"', 36, "name: 'first' is given twice"),
    ('name = "second"', 'name = "../up"', 36, "expected a name of a-z, 0-9, _ and -"),
]  # fmt: skip


def test_an_order_of_workloads_needs_two_of_them() -> None:
    claim = '\n[[part.claim]]\nkind = "workload-order"\ntext = "s"\nworkloads = ["w"]\n'
    with pytest.raises(InputError, match=r"workloads: found .*, expected at least two workloads"):
        parse(entry(TEXT + claim))


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        (
            'metric = "iops"',
            "no drift of 'iops' is measured; expected one of mb_s, mean_us, p50_us",
        ),
        ('metric = "p99_us"\njob = "a"', "a drift is that of all jobs together"),
    ],
)
def test_a_steady_claim_is_about_a_figure_with_a_drift(keys: str, message: str) -> None:
    claim = f'\n[[part.claim]]\nkind = "steady"\ntext = "s"\n{keys}\n'
    with pytest.raises(InputError, match=message):
        parse(entry(TEXT + claim))


@pytest.mark.parametrize(("old", "new", "line", "message"), BROKEN)
def test_a_broken_file_is_refused_with_line_and_key(
    old: str, new: str, line: int, message: str
) -> None:
    assert TEXT.count(old) == 1
    with pytest.raises(InputError) as refused:
        parse(entry(TEXT.replace(old, new)))
    assert message in str(refused.value)
    assert str(refused.value).startswith(f"s.toml:{line}: ")
    assert "\n" not in str(refused.value)


def test_the_error_of_a_broken_file_has_fields() -> None:
    with pytest.raises(InputError) as caught:
        parse(entry(TEXT.replace("repeats = 3", "repeat = 3")))
    wrong = caught.value
    assert (wrong.file, wrong.line, wrong.option) == (str(entry("").path), 5, "repeat")
    assert (wrong.found, wrong.nearest) == ("repeat", "repeats")
    with pytest.raises(InputError) as caught:
        parse(entry(TEXT.replace("repeats = 3", "repeats = 'x'")))
    wrong = caught.value
    assert (wrong.line, wrong.option, wrong.found) == (5, "repeats", '"x"')
    assert wrong.expected and str(wrong).endswith(f"expected {wrong.expected}")
    with pytest.raises(InputError) as caught:
        parse(entry("a = 1\nb = = 2\n"))
    assert (caught.value.file, caught.value.line) == (str(entry("").path), 2)


def test_without_parts_there_is_no_study() -> None:
    with pytest.raises(InputError, match=r"s\.toml:3: part: missing; expected at least one"):
        parse(entry('title = "a"\nquestion = "b"\npart = []\n'))


def test_every_key_is_found_on_its_line() -> None:
    text = 'a = 1\r\n\n# b = 2\n[x]\nb = """\nc = 3\n"""\nd = [\n  1, # ]\n  [2],\n]\n'
    text += '"e f" = { g = 1 }\n'
    lines = {("a",): 1, ("x",): 4, ("x", "b"): 5, ("x", "d", 1, 0): 8, ("x", "e f", "g"): 12}
    for path, line in lines.items():
        assert line_of(text, path) == line
    assert line_of(text, ("x", "absent", 3)) == 4
    assert line_of(text, ("absent",)) == 1


_PIECES = st.sampled_from(
    [*re.findall(r"\S+|\s", TEXT), "[[", "]]", "{", "}", '"', "'''", "0x", "1e999", "9" * 5000,
     "1979-05-27T07:32:00Z", "inf", "\\u0000", "\u2028", "[part]", "[[part.claim.values]]"]
)  # fmt: skip


def refused_in_one_line_or_read(text: str) -> None:
    try:
        parse(entry(text))
    except InputError as error:
        assert re.match(r"s\.toml(:\d+)?: ", str(error)), error
        assert len(str(error).splitlines()) == 1


@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_no_change_of_a_study_gives_anything_but_a_study_or_one_line(data: st.DataObject) -> None:
    words = re.findall(r"\S+|\s", TEXT)
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(words) - 1))
        words[place : place + data.draw(st.integers(0, 2))] = data.draw(
            st.lists(_PIECES, max_size=2)
        )
    refused_in_one_line_or_read("".join(words))


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=200))
def test_no_text_gives_anything_but_a_study_or_one_line(text: str) -> None:
    refused_in_one_line_or_read(text)


@pytest.mark.parametrize("name", sorted(STUDIES.paths()))
def test_the_studies_that_ship_are_in_order(name: str) -> None:
    study = parse(STUDIES.find(name))
    folder = study.file.path.parent
    used = {folder / load.partition(":")[0] for part in study.parts for load in part.workloads}
    assert used >= set((folder / name).glob("*.fio")), "each load of its folder is run"
    for kernel in study.kernels:
        for patch in kernel.patches:
            assert (folder / patch).is_file()


def test_a_key_of_thousands_of_parts_is_refused_at_once() -> None:
    """Reading it takes time quadratic in its length."""
    text = f'title = "Version 1. Two. Three."\na{".a" * 100_000} = 1\n'
    with pytest.raises(InputError, match=r"mine\.toml:2: more than 200 dots; no key has so many"):
        parse(Entry("mine", Path("mine.toml"), text))
