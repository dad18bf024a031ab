"""Thirty launches in which a random process gets a random signal at a random moment, each resumed by the next."""

import os
import random
import re
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import psutil
import pytest
import torch
from launches import PATIENCE_S, Classroom

LANES, ROUNDS, EPOCHS = 3, 10, 30
SEED = 20261121
SIGNALS = ("SIGKILL", "SIGTERM", "SIGINT", "SIGHUP", "SIGABRT", "SIGSTOP")
ARGUMENTS = ("--devices", "2", "--accelerator", "cpu", "--strategy", "ddp_notebook", "--epochs", str(EPOCHS))
OURS = re.compile(r'^  File ".*/launch/supervise\.py", line \d+, in (?!<module>)', re.MULTILINE)
ENDS = re.compile(r"^launch: .+\.$|^Stopped: every process has ended|^checkpoint  ", re.MULTILINE)


def strike(room, chance) -> tuple[str, str, int, str]:
    """Launch, send one signal, and return which, to what, the status and the output."""
    process = room.launch(*ARGUMENTS, "--resume", "--timeout", "3", fault="slow")
    time.sleep(chance.uniform(0.5, 12))
    name = chance.choice(SIGNALS)
    victim = chance.choice(sorted(room.family(), key=lambda one: one.pid) or [psutil.Process()])
    what = "the supervisor" if victim.pid == process.pid else "another"
    if victim.pid != psutil.Process().pid and (name, what) != ("SIGSTOP", "the supervisor"):
        with suppress(psutil.NoSuchProcess):
            victim.send_signal(getattr(signal, name))
    output, _ = process.communicate(timeout=PATIENCE_S)
    return name, what, process.returncode, output


def lane(folder, seed: int) -> tuple[list[str], dict]:
    """Return what went wrong in the rounds of one folder, and its last checkpoint after an undisturbed end."""
    room, chance, wrong = Classroom(folder), random.Random(seed), []
    folder.mkdir()
    try:
        for number in range(ROUNDS):
            name, what, status, output = strike(room, chance)
            told = f"seed {seed}, round {number}: {name} to {what}, status {status}\n{output[-3000:]}"
            if room.seconds_until_all_ended(10) >= 10:
                wrong.append(f"{told}\nleft behind: {room.left_behind()}")
            if OURS.search(output):
                wrong.append(f"{told}\na traceback of the supervisor")
            ended_by_force = what == "the supervisor" and name in ("SIGKILL", "SIGHUP", "SIGABRT", "SIGTERM")
            # SIGINT while Python still imports: nothing of ours runs yet, and Python says it in its own words.
            early = name == "SIGINT" and output.rstrip().endswith("KeyboardInterrupt")
            if not ended_by_force and not early and not ENDS.search(output):
                wrong.append(f"{told}\nno reason")
            blamed = re.search(r"was killed by signal (\d+)", output)
            if blamed and int(blamed[1]) != getattr(signal, name):
                wrong.append(f"{told}\na signal that nobody sent")
        status, output = room.run(*ARGUMENTS, "--resume")
        wrong += [] if status == 0 else [f"seed {seed}: the last launch ended with {status}\n{output}"]
        return wrong, torch.load(room.out / "checkpoints" / "last.ckpt", weights_only=True)
    finally:
        for process in room.family():
            with suppress(psutil.Error):
                process.kill()
        for process in room.started:
            process.stdout.close()


@pytest.mark.skipif(not os.environ.get("RANDOM_FAULTS"), reason="takes four minutes: run `make faults`")
@pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="needs the signals of Linux and macOS")
def test_nothing_is_left_and_the_resumed_training_equals_the_uninterrupted_one(tmp_path):
    with ThreadPoolExecutor(LANES) as pool:
        lanes = [pool.submit(lane, tmp_path / f"lane-{number}", SEED + number) for number in range(LANES)]
        whole = Classroom(tmp_path)
        assert whole.run(*ARGUMENTS)[0] == 0
        right = torch.load(whole.out / "checkpoints" / "last.ckpt", weights_only=True)
        done = [one.result() for one in lanes]
    wrong = [text for texts, _ in done for text in texts]
    assert not wrong, "\n\n".join(wrong)
    for _, state in done:
        assert state["global_step"] == right["global_step"] == EPOCHS * 4
        assert state["callbacks"]["RankReport"] == right["callbacks"]["RankReport"]
        assert all(torch.equal(value, right["state_dict"][name]) for name, value in state["state_dict"].items())
