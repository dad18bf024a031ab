"""The connection between the ranks and their supervisor: output and events."""

import multiprocessing
import os
import pickle
import socket
import time

import pytest

from course_utils.launch.link import Lines, Link


@pytest.fixture
def lines(tmp_path):
    lines = Lines(tmp_path)
    yield lines
    lines.close()


def send(lines, *pieces, name="main"):
    ours, theirs = socket.socketpair()
    lines.add(ours, name)
    read = []
    for piece in pieces:
        theirs.sendall(piece)
        read += lines.read(1)
    theirs.close()
    return read, lines


def test_lines_arrive_whole_however_they_were_cut(lines):
    read, _ = send(lines, b"one\ntw", b"o\nthr")
    assert read == [("main", "one"), ("main", "two")]
    rest = [("main", "thr"), ("main", {"closed": True})]
    assert lines.read(1) == rest, "the end of a line that its process did not finish"


def test_an_event_in_the_middle_of_a_line_does_not_tear_it(lines):
    event = lines.mark + b'{"epoch": 1}\n'
    read, _ = send(lines, b"a loader" + event, b" has", event + event + b" no notebook\nand" + event)
    assert [message for _, message in read] == [
        {"epoch": 1},
        {"epoch": 1},
        {"epoch": 1},
        "a loader has no notebook",
        {"epoch": 1},
    ]
    assert lines.read(1) == [("main", "and"), ("main", {"closed": True})]


def test_an_event_that_its_process_did_not_finish_is_not_shown_as_output(lines):
    send(lines, b"half" + lines.mark + b'{"epo')
    assert lines.read(1) == [("main", "half"), ("main", {"closed": True})]


def test_a_process_is_called_by_its_rank_once_it_has_said_it(lines):
    read, _ = send(lines, lines.mark + b'{"hello": {"pid": 5, "rank": 3}}\nhi\n')
    assert read[0][1] == {"hello": {"pid": 5, "rank": 3}} and read[1] == ("rank 3", "hi")


def test_a_bar_that_redraws_itself_counts_as_its_last_state_and_empty_lines_stay(lines):
    read, _ = send(lines, b" 10%\r 50%\r100%\r\n\n\xff\n")
    assert read == [("main", "100%"), ("main", ""), ("main", "\ufffd")]


def test_the_greeting_of_gloo_is_left_out_and_its_errors_are_not(lines):
    read, _ = send(lines, b"[Gloo] Rank 0 is connected to 1 peer ranks.\n[Gloo] oh no\n")
    assert read == [("main", "[Gloo] oh no")]


def child(link):
    link.open(rank=1, local_rank=1)
    print("from python")
    os.system("echo from a program")
    link.send(epoch=2, loss=float("nan"))


def test_all_that_a_process_prints_reaches_the_supervisor(tmp_path, lines):
    process = multiprocessing.get_context("spawn").Process(target=child, args=(Link(str(tmp_path)),))
    process.start()
    read, deadline = [], time.monotonic() + 60
    while process.is_alive() and time.monotonic() < deadline:
        read += lines.read(0.2)
    for _ in range(10):
        read += lines.read(0.05)
    assert process.exitcode == 0
    assert read[0][1]["hello"]["pid"] == process.pid
    assert ("rank 1", "from python") in read and ("rank 1", "from a program") in read
    assert any(message.get("epoch") == 2 for _, message in read if isinstance(message, dict))


def test_a_link_can_be_sent_to_a_spawned_process(tmp_path):
    assert pickle.loads(pickle.dumps(Link(str(tmp_path)))).folder == tmp_path


def test_a_line_without_end_arrives_in_pieces_of_bounded_size(lines):
    ours, theirs = socket.socketpair()
    lines.add(ours, "main")
    read = []
    for _ in range(100):
        theirs.sendall(b"x" * 10_000)
        read += lines.read(1)
    theirs.close()
    read += lines.read(1)
    texts = [text for _, text in read if isinstance(text, str)]
    assert len("".join(texts)) == 1_000_000 and max(map(len, texts)) < 200_000


@pytest.mark.parametrize("line", [b"\x1e", b"\x1e{}", b'a\x1e{"hello": 3}'])
def test_a_lesson_may_print_the_byte_that_starts_an_event(lines, line):
    read, _ = send(lines, line + b"\n")
    assert read == [("main", line.decode())]
