"""Results on disk: written whole or not at all, and read without trusting a word of them."""

import copy
import json
import os

import pytest

from course_utils.compare import results as module
from course_utils.compare.measurement import Measurement
from course_utils.compare.results import Result, describe_machine, machines_elsewhere, recorded
from course_utils.compare.untrusted import LARGEST_BYTES
from course_utils.devices import Device

WHAT = ("CNN step", "fp32", 16, "batch", "samples", 16.0)
ONE = Measurement(
    *WHAT,
    "cpu, 1 thread",
    "cpu",
    "a cpu",
    1,
    0.015,
    (0.01, 0.02),
    (0.01, 0.02),
    0.5,
    0.0,
    ("noise",),
)
PUBLISHED = Measurement(*WHAT, "a <GPU> & co", "cuda", "a <GPU> & co", None, 0.001)
SAVED = Result(
    (ONE, PUBLISHED),
    date="2026-11-20",
    command="a command",
    versions={"torch": "2.9.0", "driver": "575.57.08"},
    machine={"cpu": "a cpu"},
    sensors={"sm_clock_mhz": 1980.0, "power_w": 412.5},
)


def test_what_was_saved_is_loaded(tmp_path):
    SAVED.save(tmp_path / "mine.json")
    assert Result.load(tmp_path / "mine.json") == SAVED
    assert os.listdir(tmp_path) == ["mine.json"]


def test_what_is_not_known_is_null_in_the_file(tmp_path):
    SAVED.save(tmp_path / "mine.json")
    published = json.loads((tmp_path / "mine.json").read_text())["measurements"][1]
    assert [published[name] for name in ("threads", "interval_s", "first_s", "error")] == [None] * 4


def test_a_result_says_what_made_it():
    made = describe_machine()
    assert {"cpu", "system"} <= made["machine"].keys() and {"python", "torch", "course"} <= made[
        "versions"
    ].keys()
    assert Result(**made).date


def test_a_failed_save_leaves_the_old_file(tmp_path, monkeypatch):
    SAVED.save(tmp_path / "mine.json")
    monkeypatch.setattr(os, "replace", lambda *paths: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        SAVED.save(tmp_path / "mine.json")
    assert Result.load(tmp_path / "mine.json") == SAVED


@pytest.mark.parametrize("part", [0, 1, 50, 200])
def test_a_torn_file_is_refused(tmp_path, part):
    SAVED.save(tmp_path / "mine.json")
    (tmp_path / "torn.json").write_text((tmp_path / "mine.json").read_text()[:part])
    with pytest.raises(
        ValueError, match=r"torn\.json is not a complete JSON file .* Save it again"
    ):
        Result.load(tmp_path / "torn.json")


HOSTILE = [
    b"\x80\x04\x95\xff",
    b"[" * 100_000,
    b'{"a":' * 100_000,
    b"\xff\xfe",
    b"9" * 5000,
]


@pytest.mark.parametrize("content", HOSTILE, ids=lambda content: repr(content[:10]))
def test_a_file_that_is_no_json_is_refused(tmp_path, content):
    (tmp_path / "odd.json").write_bytes(content)
    with pytest.raises(ValueError, match=r"odd\.json is not a complete JSON file"):
        Result.load(tmp_path / "odd.json")


def test_a_huge_file_is_refused_unread(tmp_path):
    with open(tmp_path / "huge.json", "wb") as file:
        file.truncate(LARGEST_BYTES + 1)
    with pytest.raises(
        ValueError, match=r"huge\.json has more than 5,000,000 bytes, so it was not read"
    ):
        Result.load(tmp_path / "huge.json")


def devices_and_pipes(folder):
    os.mkfifo(folder / "pipe.json")
    (folder / "device.json").symlink_to("/dev/zero")
    (folder / "folder.json").mkdir()
    return ("pipe.json", "device.json", "folder.json")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes in the file system")
def test_nothing_but_an_ordinary_file_is_opened(tmp_path):
    # reading the first would wait for ever, the second would not end
    for name in devices_and_pipes(tmp_path):
        with pytest.raises(
            ValueError, match=f"{name} is not an ordinary file, so it was not opened"
        ):
            Result.load(tmp_path / name)


def change(where: str, value: object) -> tuple[list[str], object]:
    """Return a change of one value at a path such as measurements.0.size; the value `...` takes it
    away.
    """
    return where.split("."), value


FIRST = "measurements.0."


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (
            change("schema", "something else"),
            "not ['accelerator-course result', 1], but ['something else', 1]",
        ),
        (change("version", 2), "but ['accelerator-course result', 2]"),
        (change("origin", ...), "'result' is not complete and without extras: see 'origin'"),
        (change("extra", 1), "see 'extra'"),
        (change("origin", "dreamt"), "'result.origin' is not one of measured, published"),
        (change("origin", ["measured"]), "'result.origin' is not one of measured, published"),
        (change("date", 3), "'result.date' is not a text of at most 300 printable characters"),
        (change("date", "x" * 301), "'result.date' is not a text"),
        (change("command", "\ud800"), "'result.command' is not a text"),
        (change("command", "a\x1b[2J"), "'result.command' is not a text"),
        (change("versions", []), "'result.versions' is not a JSON object"),
        (change("versions", {"torch": 2.9}), "'result.versions.torch' is not a text"),
        (change("versions", {"\ud800": "2.9"}), "is not a text"),
        (change("machine", {"x" * 400: "m"}), "'result.machine' is not a text"),
        (change("sensors", {"power_w": "=1+1"}), "'result.sensors.power_w' is not of type float"),
        (change("measurements", {}), "'result.measurements' is not a list"),
        (change("measurements.0", 7), "'result.measurements[0]' is not a JSON object"),
        (change(FIRST + "label", ...), "see 'label'"),
        (change(FIRST + "kind", "abacus"), "kind is 'abacus', not one of cpu, cuda"),
        (change(FIRST + "size", 1.5), "'result.measurements[0].size' is not of type int"),
        (change(FIRST + "size", True), "'result.measurements[0].size' is not of type int"),
        (
            change(FIRST + "size", -16),
            "result.measurements[0]: sizes, counts and seconds are positive, but one is -16",
        ),
        (change(FIRST + "size", 10**19), "'result.measurements[0].size' is not below 1e18"),
        (change(FIRST + "threads", 0), "sizes, counts and seconds are positive, but one is 0"),
        (
            change(FIRST + "rounds_s", ["1"]),
            "'result.measurements[0].rounds_s[0]' is not of type float",
        ),
        (change(FIRST + "rounds_s", [-1]), "but one is -1.0"),
        (
            change(FIRST + "rounds_s", [0.5]),
            "median_s is 0.015, which is not the median of rounds_s",
        ),
        (change(FIRST + "rounds_s", [0.015] * 10_001), "is not a list of 0 to 10,000 values"),
        (change(FIRST + "interval_s", [0.01]), "is not a list of 2 to 2 values"),
        (change(FIRST + "median_s", None), "median_s' is not of type float"),
        (change(FIRST + "median_s", 1e300), "median_s' is not below 1e18"),
        (change(FIRST + "error", -1), "error is -1.0, which is not a share of a value"),
        (change(FIRST + "warnings", [1]), "warnings[0]' is not a text"),
    ],
)
def test_a_file_that_does_not_fit_is_refused_with_the_reason(tmp_path, edit, message):
    SAVED.save(tmp_path / "mine.json")
    content = json.loads((tmp_path / "mine.json").read_text())
    (*path, last), value = edit
    inner = content
    for step in path:
        inner = inner[int(step) if step.isdigit() else step]
    last = int(last) if last.isdigit() else last
    if value is ...:
        del inner[last]
    else:
        inner[last] = copy.deepcopy(value)
    (tmp_path / "odd.json").write_text(json.dumps(content))
    with pytest.raises(
        ValueError, match=r"odd\.json is not a result that this course can read"
    ) as refused:
        Result.load(tmp_path / "odd.json")
    assert message in str(refused.value)


@pytest.mark.parametrize("number", ["1e999", "NaN", "Infinity", "-Infinity"])
def test_a_number_that_is_not_finite_in_the_file_is_refused(tmp_path, number):
    SAVED.save(tmp_path / "mine.json")
    text = (
        (tmp_path / "mine.json").read_text().replace('"median_s": 0.015', f'"median_s": {number}')
    )
    (tmp_path / "odd.json").write_text(text)
    with pytest.raises(ValueError, match=r"odd\.json .*median_s' is not below 1e18"):
        Result.load(tmp_path / "odd.json")


@pytest.mark.parametrize("content", ["[]", "3", "null", '"text"', '{"x": NaN}', "-Infinity"])
def test_json_of_another_shape_is_refused(tmp_path, content):
    (tmp_path / "odd.json").write_text(content)
    with pytest.raises(ValueError, match="its schema and version are not"):
        Result.load(tmp_path / "odd.json")


def test_a_missing_file_is_said_to_be_missing(tmp_path):
    with pytest.raises(FileNotFoundError):
        Result.load(tmp_path / "none.json")


@pytest.mark.parametrize(
    "odd", [{"size": 0}, {"median_s": float("nan")}, {"first_s": float("inf")}, {"items": -1.0}]
)
def test_a_measurement_that_cannot_be_is_not_made(odd):
    values = {name: getattr(PUBLISHED, name) for name in PUBLISHED.__dataclass_fields__}
    with pytest.raises(ValueError, match="sizes, counts and seconds are positive"):
        Measurement(**values | odd)


def test_one_kind_of_work_is_selected():
    other = Measurement("RNN step", "bf16", *WHAT[2:], "b", "cpu", "b", 1, 1.0)
    both = Result((ONE, other))
    assert (
        both.select("RNN step").measurements
        == (other,)
        == both.select("RNN step", "bf16").measurements
    )
    assert both.select("RNN step", "fp32").measurements == ()
    for show in (both.plot, both.to_frame):
        with pytest.raises(ValueError, match="this result holds 2 kinds of work"):
            show()


def test_the_published_rates_are_those_of_the_guide_with_their_source():
    published = [result for result in recorded().values() if result.origin == "published"]
    # Read from the three outputs that the guide prints: "8/8 [00:00<00:00, 42.49it/s, ...", and so
    # on.
    rates = {
        one.kind: 1 / one.median_s
        for result in published
        for one in result.select("RNN step").measurements
    }
    assert rates == {"cpu": 42.49, "cuda": 39.81, "xla": 8.52}
    for result in published:
        assert (
            "Darts user guide" in result.source
            and "https://" in result.source
            and not result.command
        )
        assert result.date == "2022-03-01"


def test_every_measured_recording_says_how_it_was_made():
    for result in recorded().values():
        if result.origin == "measured":
            assert result.command.startswith("python ") and result.date and result.versions["torch"]
            assert not result.source


def test_the_ladder_holds_nine_ways_and_two_compilations():
    ladder = recorded()["train_rnn_cpu"]
    ways = {one.label: one for one in ladder.select("RNN training, one step").measurements}
    assert len(ways) == 9 and all(len(one.rounds_s) == 5 for one in ways.values())
    # the median of the five rates that were written down
    assert ways["Darts"].rate == pytest.approx(228.8978565970478)
    assert ways["loss and step under torch.compile"].rate == pytest.approx(1039.8166286363262)
    compiled = {
        one.label: one.median_s for one in ladder.select("RNN training, compilation").measurements
    }
    assert compiled == {"cold": 73.90101137000056, "from_cache": 7.478458525999486}


def test_machines_elsewhere_are_those_that_are_not_here_and_can_be_saved(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "RECORDINGS", tmp_path)
    monkeypatch.setattr(module, "recorded", lambda: {"mine": SAVED})
    monkeypatch.setattr(module, "find_devices", lambda: [Device("cpu", 0, "a cpu")])
    (elsewhere,) = machines_elsewhere()
    assert elsewhere.labels == ["a <GPU> & co (measured)"]
    elsewhere.save(tmp_path / "again.json")
    assert Result.load(tmp_path / "again.json") == elsewhere
    monkeypatch.setattr(module, "find_devices", lambda: [Device("cuda", 0, "a <GPU> & co")])
    assert machines_elsewhere()[0].labels == ["a cpu, cpu, 1 thread (measured)"]


def test_every_shipped_machine_elsewhere_can_be_saved(tmp_path):
    for result in machines_elsewhere():
        result.save(tmp_path / "a.json")
        assert Result.load(tmp_path / "a.json") == result


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_a_file_that_an_editor_on_windows_saved_again_is_read(tmp_path, encoding):
    SAVED.save(tmp_path / "mine.json")
    text = (tmp_path / "mine.json").read_text(encoding="utf-8").replace("\n", "\r\n")
    (tmp_path / "again.json").write_bytes(text.encode(encoding))
    assert Result.load(tmp_path / "again.json") == SAVED
