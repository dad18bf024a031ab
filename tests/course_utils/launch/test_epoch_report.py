"""What a rank says while it waits."""

from course_utils.launch.epoch_report import say_when_waiting


def said(*counts):
    """Return what is said of a rank that has begun so many batches, minute by minute."""
    each, lines = iter(counts), []
    say_when_waiting("rank 1", lambda: next(each), sleep=lambda _: None, say=lines.append)
    return lines


def test_a_rank_that_makes_progress_says_nothing():
    assert said(0, 1, 2, 5, None) == []


def test_a_rank_that_ends_says_nothing():
    assert said(5, None) == []


def test_a_rank_that_waits_says_so_once_with_its_batches_and_the_reason():
    (line,) = said(0, 3, 3, 3, 3, None)
    assert "rank 1 has begun 3 batches" in line and "fewer batches" in line


def test_a_rank_that_waits_again_says_so_again():
    assert len(said(3, 3, 3, 4, 4, None)) == 2
