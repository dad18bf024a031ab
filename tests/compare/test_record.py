import json

import pytest

from course_utils.compare import record as module
from course_utils.compare.record import FOLDER, Recording, Result, load_recordings, main, precisions, record, tera_flops
from course_utils.devices import Device, pick_device
from course_utils.timing import Timing

RECORDING = Recording(
    label="measured",
    device="A <GPU> & co",
    kind="cuda",
    detail="",
    threads=1,
    date="2026-11-20",
    command="python -m course_utils.compare.record",
    source="",
    versions={"torch": "2.9.0"},
    results=(Result("cnn", "fp32", 64, 2.5, "samples/s"), Result("cnn", "fp32", 16, 1.5, "samples/s")),
)


def test_the_published_rates_are_those_of_the_guide_with_their_source():
    published = [item for item in load_recordings() if item.label == "published"]
    found = {item.kind: item.find("rnn") for item in published}
    # Read from the three outputs that the guide prints: "8/8 [00:00<00:00, 42.49it/s, ...", and so on.
    assert {kind: [r.value for r in results] for kind, results in found.items()} == {
        "cpu": [42.49],
        "cuda": [39.81],
        "xla": [8.52],
    }
    for item in published:
        assert "Darts user guide" in item.source and "https://" in item.source and not item.command
        assert repr(item).startswith(f"{item.device} (published 2022-03-01; Darts user guide")


def test_every_measured_recording_says_how_it_was_made():
    for item in load_recordings():
        assert item.label in ("measured", "published")
        if item.label == "measured":
            assert (
                item.command.startswith("python -m course_utils.compare.record")
                and item.date
                and item.versions["torch"]
            )
            assert not item.source and all(result.value > 0 for result in item.results)


def test_a_recording_survives_the_way_to_a_file_and_back(tmp_path):
    RECORDING.save(tmp_path / "a.json")
    assert load_recordings(tmp_path) == [RECORDING]


def test_results_are_found_by_workload_and_precision_and_sorted_by_size():
    assert [result.size for result in RECORDING.find("cnn")] == [16, 64]
    assert RECORDING.find("cnn", "bf16") == [] == RECORDING.find("rnn")


def test_other_json_in_the_folder_is_left_alone(tmp_path):
    (tmp_path / "other.json").write_text(json.dumps({"what": "steps a second", "steps_per_s": {}}))
    (tmp_path / "list.json").write_text("{}")
    assert load_recordings(tmp_path) == []


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text[: len(text) // 2],
        lambda text: text.replace('"threads"', '"threats"'),
        lambda text: text.replace('"results": [', '"outcome": ['),
        lambda text: text.replace('"unit"', '"units"'),
        lambda text: "[1, 2]",
    ],
    ids=["torn", "a field misspelt", "no results", "a result misspelt", "not an object"],
)
def test_a_torn_or_foreign_recording_is_named(tmp_path, damage):
    RECORDING.save(tmp_path / "a.json")
    (tmp_path / "a.json").write_text(damage((tmp_path / "a.json").read_text()))
    with pytest.raises(ValueError, match=r"a\.json is no whole recording .*make it again with"):
        load_recordings(tmp_path)


def test_the_command_measures_this_cpu_and_the_file_can_be_read(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(module, "CPU_BATCHES", (2, 4))
    monkeypatch.setattr(module, "CPU_SIDE", 64)
    main(["--device", "cpu", "--threads", "1", "--seconds", "0.01", "--out", str(tmp_path / "new")])
    (found,) = load_recordings(tmp_path / "new")
    assert found.device == pick_device("cpu").name and found.kind == "cpu" and found.label == "measured"
    assert found.command == "python -m course_utils.compare.record --device cpu --threads 1 --seconds 0.01"
    assert found.threads == 1
    assert [(r.precision, r.size) for r in found.find("cnn")] == [("fp32", 2), ("bf16", 2), ("fp32", 4), ("bf16", 4)]
    assert {result.workload for result in found.results} == {"rnn", "cnn", "product", "copy in memory"}
    assert all(result.value > 0 for result in found.results) and "wrote " in capsys.readouterr().out


def test_a_rehearsal_is_not_recorded():
    with pytest.raises(ValueError, match="is a rehearsal on this machine's CPU, not a device to record"):
        record(Device("xla", 0, "XLA on a CPU", rehearsal=True))


@pytest.mark.parametrize("name", ["cuda:77", "banana"])
def test_the_command_names_a_device_that_is_not_here_and_fails(name, tmp_path):
    with pytest.raises(SystemExit, match=f"course_utils.compare.record: device '{name}' was requested"):
        main(["--device", name, "--out", str(tmp_path)])
    assert not list(tmp_path.iterdir())


def test_a_product_is_two_operations_for_each_of_side_cubed():
    assert tera_flops(Timing("cpu", 1, 1.0, (0.5, 0.5), 1), 1000) == pytest.approx(2 * 1e9 / 0.5 / 1e12)


def test_a_cpu_has_no_tf32():
    assert precisions(pick_device("cpu")) == ("fp32", "bf16")


def test_no_file_of_the_recordings_is_empty():
    assert all(json.loads(path.read_text()) for path in FOLDER.glob("*.json"))
