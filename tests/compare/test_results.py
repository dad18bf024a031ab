"""Results on disk, and what the course has recorded."""

from dataclasses import replace

import pytest

from course_utils.compare import results as module
from course_utils.compare.measurement import Measurement
from course_utils.compare.results import Result, describe_machine, machines_elsewhere, recorded
from course_utils.devices import Device

ONE = Measurement(
    workload="CNN step",
    precision="fp32",
    size=16,
    size_name="batch",
    unit="samples",
    items=16.0,
    label="cpu, 1 thread",
    kind="cpu",
    device="a cpu",
    threads=1,
    rounds_s=(0.01, 0.02),
    first_s=0.5,
    error=0.0,
    warnings=("noise",),
)
GPU = "a <GPU> & co"
PUBLISHED = replace(
    ONE, label=GPU, kind="cuda", device=GPU, threads=None, rounds_s=(0.001,), warnings=()
)
SAVED = Result(
    (ONE, PUBLISHED),
    date="2026-11-20",
    command="a command",
    versions={"torch": "2.9.0", "driver": "575.57.08"},
    machine={"cpu": "a cpu"},
)


def test_what_was_saved_is_loaded(tmp_path):
    SAVED.save(tmp_path / "mine.json")
    assert Result.load(tmp_path / "mine.json") == SAVED


def test_a_result_says_what_made_it():
    made = describe_machine()
    assert {"cpu", "system"} <= made["machine"].keys()
    assert {"python", "torch", "course"} <= made["versions"].keys()
    assert Result(**made).date


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"version": 2', '"version": 1', "its schema and version are"),
        ('"label"', '"lable"', "lable"),
        ('"kind": "cpu"', '"kind": "abacus"', "kind is 'abacus', not one of cpu, cuda"),
        ('"size": 16', '"size": "large"', "not supported between"),
        ('"items": 16.0', '"items": NaN', "have to be positive"),
        ('"warnings"', '"worries"', "warnings"),
        ("{", "", "Extra data"),
        ("{", "[", "delimiter"),
    ],
)
def test_a_file_that_is_no_result_is_an_error_with_its_name(tmp_path, old, new, message):
    SAVED.save(tmp_path / "mine.json")
    text = (tmp_path / "mine.json").read_text().replace(old, new, 1)
    (tmp_path / "odd.json").write_text(text)
    wrong = r"odd\.json is not a result that this course can read"
    with pytest.raises(ValueError, match=wrong) as refused:
        Result.load(tmp_path / "odd.json")
    assert message in str(refused.value)


def test_a_missing_file_is_said_to_be_missing(tmp_path):
    with pytest.raises(FileNotFoundError):
        Result.load(tmp_path / "none.json")


@pytest.mark.parametrize("odd", [{"size": 0}, {"rounds_s": ()}, {"rounds_s": (1.0, -1.0)}])
def test_a_measurement_that_cannot_be_is_not_made(odd):
    with pytest.raises(ValueError, match="have to be positive"):
        replace(ONE, **odd)


def test_one_kind_of_work_is_selected():
    other = replace(ONE, workload="RNN step", precision="bf16")
    both = Result((ONE, other))
    assert both.select("RNN step").measurements == (other,)
    assert both.select("RNN step", "bf16").measurements == (other,)
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
