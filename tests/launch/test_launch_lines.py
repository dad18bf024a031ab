"""The lines between the ranks and their supervisor: output, events, signs of life."""

import multiprocessing
import os
import pickle
import socket
import subprocess
import sys
import time

import pytest

from course_utils.launch.rank_link import EVENT, Link, Mark, Marks
from course_utils.launch.switchboard import Switchboard


@pytest.fixture
def board(tmp_path):
    board = Switchboard(tmp_path)
    yield board
    board.hear_out()


def say(board, *pieces, name="main"):
    ours, theirs = socket.socketpair()
    board.add(ours, name)
    heard = []
    for piece in pieces:
        theirs.sendall(piece)
        heard += board.hear(1)
    theirs.close()
    return heard, board


def test_lines_arrive_whole_however_they_were_cut(board):
    heard, _ = say(board, b"one\ntw", b"o\nthr")
    assert heard == [("main", "one"), ("main", "two")]
    assert board.hear(1) == [("main", "thr")], "the end of a line that its process did not finish"


def test_an_event_is_told_apart_from_the_output_before_it(board):
    heard, _ = say(board, b"50 %" + EVENT + b'{"epoch": 1}\n')
    assert heard == [("main", "50 %"), ("main", {"epoch": 1})]


def test_a_process_is_called_by_its_rank_once_it_has_said_it(board):
    heard, _ = say(board, EVENT + b'{"hello": {"pid": 5, "rank": 3}}\nhi\n')
    assert heard[0][1] == {"hello": {"pid": 5, "rank": 3}} and heard[1] == ("rank 3", "hi")


def test_a_bar_that_redraws_itself_counts_as_its_last_state_and_empty_lines_stay(board):
    heard, _ = say(board, b" 10%\r 50%\r100%\r\n\n\xff\n")
    assert heard == [("main", "100%"), ("main", ""), ("main", "\ufffd")]


def test_the_greeting_of_gloo_is_left_out_and_its_errors_are_not(board):
    heard, _ = say(board, b"[Gloo] Rank 0 is connected to 1 peer ranks.\n[Gloo] oh no\n")
    assert heard == [("main", "[Gloo] oh no")]


def child(link):
    os.setsid()  # a line that closes ends the whole process group, which must not be that of the tests
    link.open(rank=1, local_rank=1)
    print("from python")
    os.system("echo from a program")
    link.tell(epoch=2, loss=float("nan"))


def test_all_that_a_process_prints_reaches_the_supervisor(tmp_path, board):
    process = multiprocessing.get_context("spawn").Process(target=child, args=(Link(str(tmp_path)),))
    process.start()
    heard, deadline = [], time.monotonic() + 60
    while process.is_alive() and time.monotonic() < deadline:
        heard += board.hear(0.2)
    for _ in range(10):
        heard += board.hear(0.05)
    assert process.exitcode == 0
    assert heard[0][1]["hello"]["pid"] == process.pid
    assert ("rank 1", "from python") in heard and ("rank 1", "from a program") in heard
    assert any(message.get("epoch") == 2 for _, message in heard if isinstance(message, dict))


def test_a_link_can_be_sent_to_a_spawned_process(tmp_path):
    assert pickle.loads(pickle.dumps(Link(str(tmp_path)))).folder == tmp_path


def test_marks_are_shared_through_their_file(tmp_path):
    before = time.time()
    supervisor = Marks(tmp_path, create_for=3)
    assert all(mark.count == 0 and before - 1 <= mark.time <= time.time() for mark in supervisor.read())
    Marks(tmp_path).write(2, Mark(7, 5, 123.5, 3))
    assert supervisor.read()[2] == Mark(7, 5, 123.5, 3) and supervisor.read()[1].count == 0


def test_a_mark_says_where_its_rank_stood():
    assert Mark().where == "it has not begun to train"
    assert Mark(5, 4, 0.0, 3).where.startswith("after step 4, it has finished the forward pass")


WRITER = """
import sys
from pathlib import Path
from course_utils.launch.rank_link import Mark, Marks
marks, mark = Marks(Path(sys.argv[1])), Mark(7, 7, 7.0, 3)
print("writing", flush=True)
while True:
    marks.write(1, mark)
"""


def test_who_reads_while_another_process_writes_never_sees_an_empty_mark(tmp_path):
    marks = Marks(tmp_path, create_for=2)
    with subprocess.Popen([sys.executable, "-c", WRITER, tmp_path], stdout=subprocess.PIPE) as writer:
        assert writer.stdout.readline() == b"writing\n"
        while marks.read()[1] != Mark(7, 7, 7.0, 3):
            time.sleep(0.001)
        seen = {marks.read()[1] for _ in range(300_000)}
        writer.kill()
    assert seen == {Mark(7, 7, 7.0, 3)}
