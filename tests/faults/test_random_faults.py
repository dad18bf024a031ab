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

LANES, ROUNDS, EPOCHS = 3, 10, 80  # so many epochs that most rounds strike before the last
SEED = int(os.environ.get("RANDOM_FAULTS") or 1)
SIGNALS = ("SIGKILL", "SIGTERM", "SIGINT", "SIGHUP", "SIGABRT", "SIGSTOP")
ARGUMENTS = ("--devices", "2", "--accelerator", "cpu", "--strategy", "ddp_notebook", "--epochs", str(EPOCHS))
# A function of the launcher in a traceback that no process of the run has printed, whose lines begin with its name.
OURS = re.compile(r'^  File ".*/course_utils/launch/\w+\.py", line \d+, in (?!<module>)', re.MULTILINE)
DONE = re.compile(r"^checkpoint  ", re.MULTILINE)
STOPPED = re.compile(r"^\[launch\] stopped: every process has ended|^launch: stopped\.$", re.MULTILINE)
VERDICT = re.compile(r"^launch: (.+\.)$", re.MULTILINE)


def roles(supervisor: int, family: list[psutil.Process]) -> dict[int, str]:
    """Return what each process of a launch is. The first process starts rank 0 and then rank 1."""
    found, ranks = {supervisor: "the supervisor"}, []
    for one in sorted(family, key=lambda process: process.pid):
        with suppress(psutil.Error):
            if "course_utils.launch.ranks" in one.cmdline():
                if one.ppid() == supervisor:
                    found[one.pid] = "the first process"
                else:
                    ranks.append(one.pid)
    return found | ({pid: f"rank {number}" for number, pid in enumerate(ranks)} if len(ranks) == 2 else {})


def strike(room, chance) -> tuple[str, str, int, str]:
    """Launch, send one signal, and return which, to what, the status and the output."""
    process = room.launch(*ARGUMENTS, "--resume", "--timeout", "3", fault="slow")
    time.sleep(chance.uniform(0.5, 12))
    name, family = chance.choice(SIGNALS), sorted(room.family(), key=lambda one: one.pid)
    role = roles(process.pid, family)
    victim = chance.choice(family or [psutil.Process()])
    what = role.get(victim.pid, "another")
    if victim.pid != psutil.Process().pid and (name, what) != ("SIGSTOP", "the supervisor"):
        with suppress(psutil.NoSuchProcess):
            victim.send_signal(getattr(signal, name))
    output, _ = process.communicate(timeout=PATIENCE_S)
    return name, what, process.returncode, output


def complaint(name: str, what: str, status: int, output: str) -> str:
    """Return what is wrong with how a launch ended after this signal to that process, or ""."""
    if OURS.search(output):
        return "a traceback of the supervisor"
    verdict = VERDICT.search(output)
    blamed = re.search(r"was killed by signal (\d+)", output)
    if blamed and int(blamed[1]) != getattr(signal, name):
        return "a signal that nobody sent"
    if what == "the supervisor":
        if name in ("SIGKILL", "SIGHUP", "SIGABRT"):
            return "" if status == -getattr(signal, name) or DONE.search(output) else "another status than the signal"
        # While Python still imports, nothing of ours runs yet: the signal ends it in Python's own way.
        early = status == -getattr(signal, name) and not re.search(r"^\[", output, re.MULTILINE)
        ended = early or STOPPED.search(output) or DONE.search(output)
        return "" if ended or name == "SIGSTOP" else "it was not stopped"
    if DONE.search(output):
        return "" if status == 0 else "a training that is done has failed"
    if not verdict or status != 1:
        return "no reason"
    if what != "another" and name != "SIGSTOP" and not verdict[1].startswith(what):
        return f"it was {what}"
    return ""


def lane(folder, seed: int) -> tuple[list[str], dict]:
    """Return what went wrong in the rounds of one folder, and its last checkpoint after an undisturbed end."""
    room, chance, wrong = Classroom(folder), random.Random(seed), []
    folder.mkdir()
    try:
        for number in range(ROUNDS):
            name, what, status, output = strike(room, chance)
            ended = f"seed {seed}, round {number}: {name} to {what}, status {status}\n{output[-3000:]}"
            if room.seconds_until_all_ended(10) >= 10:
                wrong.append(f"{ended}\nleft behind: {room.left_behind()}")
            if why := complaint(name, what, status, output):
                wrong.append(f"{ended}\n{why}")
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
        lanes = [pool.submit(lane, tmp_path / f"lane-{number}", SEED * 100 + number) for number in range(LANES)]
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
