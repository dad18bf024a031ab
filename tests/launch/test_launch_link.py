"""The connection between the ranks and their supervisor: output and events."""

import multiprocessing
import os
import pickle
import socket
import time

import pytest

from course_utils.launch.link import Lines, Link

pytestmark = pytest.mark.process


@pytest.fixture
def lines(tmp_path):
    lines = Lines(tmp_path)
    yield lines
    if lines._selector.get_map():
        lines.close()


def connect(folder, first_line):
    """Connect as a process does, whose first line says what follows and whose it is."""
    process = socket.socket(socket.AF_UNIX)
    process.connect(str(folder / "socket"))
    process.sendall(first_line + b"\n")
    return process


def send(lines, *pieces):
    ours, theirs = socket.socketpair()
    lines.add(ours, "main")
    read = []
    for piece in pieces:
        theirs.sendall(piece)
        read += lines.read(1)
    theirs.close()
    return read


def test_lines_arrive_whole_however_they_were_cut(lines):
    assert send(lines, b"one\ntw", b"o\nthr") == [("main", "one"), ("main", "two")]
    assert lines.read(1) == [("main", "thr")], "the end of a line that its process did not finish"


def test_what_a_process_prints_before_an_event_is_read_before_it_and_bears_the_same_name(
    lines, tmp_path
):
    with (
        connect(tmp_path, b"output rank 3") as output,
        connect(tmp_path, b"events rank 3") as events,
    ):
        output.sendall(b"hi\n")
        events.sendall(b'{"epoch": 1}\n{"ep')
        assert lines.close() == [("rank 3", "hi"), ("rank 3", {"epoch": 1})]


def test_an_event_that_its_process_did_not_finish_is_left_out_and_the_end_comes_last(
    lines, tmp_path
):
    with connect(tmp_path, b"events rank 0"), connect(tmp_path, b"events rank 1") as other:
        other.sendall(b'{"fault": "text"}\n{"epo')
    assert lines.close() == [
        ("rank 1", {"fault": "text"}),
        ("rank 0", {"closed": True}),
        ("rank 1", {"closed": True}),
    ]


def test_a_bar_that_redraws_itself_counts_as_its_last_state_and_empty_lines_stay(lines):
    read = send(lines, b" 10%\r 50%\r100%\r\n\n\xff\n")
    assert read == [("main", "100%"), ("main", ""), ("main", "\ufffd")]


def test_the_greeting_of_gloo_is_left_out_and_its_errors_are_not(lines):
    read = send(lines, b"[Gloo] Rank 0 is connected to 1 peer ranks.\n[Gloo] oh no\n")
    assert read == [("main", "[Gloo] oh no")]


def child(link):
    os.environ["LOCAL_RANK"] = "1"
    link.open()
    link.open()
    print("from python")
    os.system("echo from a program")
    link.send(epoch=2, loss=float("nan"))


def test_all_that_a_process_prints_reaches_the_supervisor(tmp_path, lines):
    process = multiprocessing.get_context("spawn").Process(
        target=child, args=(Link(str(tmp_path)),)
    )
    process.start()
    read, deadline = [], time.monotonic() + 60
    while process.is_alive() and time.monotonic() < deadline:
        read += lines.read(0.2)
    for _ in range(10):
        read += lines.read(0.05)
    assert process.exitcode == 0
    assert read.count(("rank 1", {"hello": process.pid})) == 1
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
