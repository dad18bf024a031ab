"""What a rank reports of an exception: whatever it is, in bounded length."""

import pytest

from course_utils.launch.reporting import run_rank


class Notes:
    """Stands for the connection to the supervisor."""

    asked = None

    def __init__(self):
        self.events = []

    def open(self, **hello):
        self.events.append({"hello": hello})

    def send(self, **event):
        self.events.append(event)


class Own(BaseException):
    pass


def fault_of(error) -> list[dict]:
    def fail():
        raise error

    notes = Notes()
    with pytest.raises(type(error)):
        run_rank(notes, fail)
    return [event for event in notes.events if "fault" in event]


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ValueError("no target"), "ValueError: no target"),
        (Own("mine"), "Own: mine"),
        (KeyboardInterrupt(), "KeyboardInterrupt: a person or another program sent it SIGINT"),
    ],
)
def test_every_exception_is_reported_with_its_rank(error, said):
    (event,) = fault_of(error)
    assert event["error"] == said and event["rank"] == 0 and "in fail" in event["fault"]


def test_an_exit_is_left_to_its_status():
    assert fault_of(SystemExit(0)) == []


def test_an_error_of_ten_million_characters_is_reported_in_a_bounded_length():
    (event,) = fault_of(ValueError("x" * 10**7))
    assert event["error"].startswith("ValueError: xxx") and len(event["error"]) < 1000
    assert len(event["fault"]) < 50_000


def test_a_function_that_returns_is_left_alone():
    notes = Notes()
    assert run_rank(notes, lambda a, b: a + b, 1, b=2) == 3 and notes.events == [{"hello": {"rank": 0}}]
