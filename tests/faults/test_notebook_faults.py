"""The launcher under a real Jupyter kernel: what it shows, and what its stop button and its death
do.
"""

import time

import pytest
from launches import CLASSROOM, PATIENCE_S, SEARCHED

jupyter_client = pytest.importorskip("jupyter_client", reason="needs a Jupyter kernel")

RUN = f"""
import matplotlib.pyplot, IPython
from course_utils.launch import run_lesson
lesson = {str(CLASSROOM)!r} + ":make_lesson"
"""
RUN_SLOWLY = (
    "run_lesson(lesson, devices=2, global_batch=8, strategy='ddp_notebook', out='out', epochs="
)


@pytest.fixture
def kernel(classroom):
    manager = jupyter_client.KernelManager(kernel_name="python3")
    manager.start_kernel(
        env=classroom.environment(FAULT="slow", PYTHONPATH=SEARCHED), cwd=str(classroom.folder)
    )
    client = manager.client()
    client.start_channels()
    client.wait_for_ready(timeout=PATIENCE_S)
    execute(client, RUN)
    yield manager, client
    client.stop_channels()
    manager.shutdown_kernel(now=True)


def execute(client, code):
    """Run a cell and return what it printed, and the name of its exception."""
    message_id = client.execute(code)
    return collect(client, message_id)


def collect(client, message_id, until=None):
    text, error, deadline = "", "", time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        message = client.get_iopub_msg(timeout=PATIENCE_S)
        if message["parent_header"].get("msg_id") != message_id:
            continue
        content = message["content"]
        text += content.get("text", "") or content.get("data", {}).get("text/plain", "")
        error = content.get("ename", error)
        if until and until in text:
            return text, error
        if content.get("execution_state") == "idle":
            return text, error
    raise TimeoutError(text)


def test_a_kernel_streams_a_spawned_rank_and_neither_it_nor_its_loader_imports_jupyter(
    classroom, kernel
):
    _, client = kernel
    run = "run_lesson(lesson, strategy='ddp_spawn', devices=1, epochs=1, global_batch=8, num_workers=1)"
    text, error = execute(client, f"import os; os.environ['FAULT'] = 'modules'\n{run}")
    assert error == "", text
    assert "[rank 0] a rank has []" in text and "[rank 0] a loader has []" in text
    assert "samples per rank  32" in text and "steps             4" in text
    assert len(classroom.family()) == 1, "the kernel alone"


def test_the_stop_button_ends_every_process_and_the_run_can_be_resumed(classroom, kernel):
    manager, client = kernel
    message_id = client.execute(f"{RUN_SLOWLY}200)")
    classroom.wait_for_note("pid-1")
    manager.interrupt_kernel()
    _, error = collect(client, message_id)
    assert error == "KeyboardInterrupt"
    deadline = time.monotonic() + 10
    while len(classroom.family()) > 1 and time.monotonic() < deadline:
        time.sleep(0.05)
    assert len(classroom.family()) == 1, classroom.left_behind()
    text, error = execute(client, f"{RUN_SLOWLY}3, resume=True)")
    assert error == "" and ("continuing after step" in text or "nothing to do" in text)


def test_a_kernel_that_is_killed_takes_its_ranks_with_it(classroom, kernel):
    manager, client = kernel
    client.execute(f"{RUN_SLOWLY}200)")
    classroom.wait_for_note("pid-1")
    assert len(classroom.family()) >= 4
    manager.provisioner.process.kill()
    assert classroom.seconds_until_all_ended(10) < 10, classroom.left_behind()
