import pytest

from course_utils.compare.recordings import load_recording


def test_the_ladder_says_where_when_and_how_it_was_measured():
    ladder = load_recording("train_rnn_cpu")
    assert {"device", "threads", "versions", "date", "command", "steps_per_s", "compile_s"} <= set(ladder)
    assert all(min(rates) > 0 for rates in ladder["steps_per_s"].values())


def test_a_recording_that_is_not_there_lists_those_that_are():
    with pytest.raises(FileNotFoundError, match=r"'quantum' was requested, but there are: .*train_rnn_cpu"):
        load_recording("quantum")
