"""Start a program in Python, as `python -c`, `python -m` and `python FILE` would.

Most programs of the tests spend their time on importing torch and Lightning. So under Linux they
are forked from a process that has imported both, with one thread and no device, and has done
nothing else. Where the start itself is tested (what is imported, where libraries are found, an
option or a variable that Python reads as it starts) the program gets a Python of its own:
`fresh=True`. The kernel of a lesson, and what it starts as `python` or `torchrun`, is forked too:
`forked/kernels` has commands of these names.
"""

import atexit
import gc
import io
import json
import multiprocessing.process
import os
import re
import runpy
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import types
import warnings
from contextlib import contextmanager, suppress
from pathlib import Path

# The variable with the address of the process to fork from. The workers of pytest-xdist inherit it.
ADDRESS = "COURSE_TESTS_FORK"
MOST_IMAGES = 600  # that a script of a lesson trains on, as nobody compares what it prints
# What the commands of `forked/kernels` start: a Python, and this file.
COMMANDS = {"COURSE_TESTS_PYTHON": sys.executable, "COURSE_TESTS_START": __file__}


@contextmanager
def process_to_fork_from():
    """Start the process from which programs are forked; it ends when the block or this process
    does.
    """
    with socket.socket(socket.AF_UNIX) as door:
        door.bind("")  # Linux chooses a name, which is no file
        door.listen()
        number = door.fileno()
        command = [sys.executable, __file__, str(number)]
        # of a session of its own, so that Ctrl-C ends the tests first
        how = {"stdin": subprocess.PIPE, "start_new_session": True, "pass_fds": [number]}
        with subprocess.Popen(command, env=os.environ | {"OPENBLAS_NUM_THREADS": "1"}, **how):
            os.environ[ADDRESS] = door.getsockname().decode().removeprefix("\0")
            os.environ.update(COMMANDS)
            yield


def python(*words, fresh=False, cwd=None, input="", timeout=300, env=None, **variables):
    """Run Python with these words, and return its status, stdout and stderr.

    `variables` change single variables of the environment (None takes one away), `env` is the
    environment as a whole.
    """
    return Program(words, fresh, cwd, env or environment(**variables), input).wait(timeout)


def torchrun(ranks: int, *words, cwd=None, timeout=300, **variables):
    """Run Python with these words as torchrun starts its ranks, and return how each ended."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        variables |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free.getsockname()[1])}
    variables["TORCHELASTIC_USE_AGENT_STORE"] = None  # there is no agent: rank 0 has the store
    variables |= {"WORLD_SIZE": str(ranks), "LOCAL_WORLD_SIZE": str(ranks), "OMP_NUM_THREADS": "1"}
    numbers = [{"RANK": str(rank), "LOCAL_RANK": str(rank)} for rank in range(ranks)]
    started = [Program(words, cwd=cwd, env=environment(**variables, **each)) for each in numbers]
    return [program.wait(timeout) for program in started]


def environment(**variables: str | None) -> dict[str, str]:
    """Return the environment with some variables changed, or left out where they are None."""
    changed = {**os.environ, **variables}
    return {name: value for name, value in changed.items() if value is not None}


def read_at_start(env: dict[str, str]) -> dict[str, str]:
    """Return the variables that Python and the loader of libraries read as they start."""
    names = {name for name in env if name.startswith(("PYTHON", "LD_"))}
    names -= {"PYTHONPATH", "PYTHONWARNINGS", "PYTHON_COLORS", "PYTHON_EXEC"}  # see `become`
    return {name: env[name] for name in names}


OURS = read_at_start(dict(os.environ))


def can_be_forked(words: list[str]) -> bool:
    """Say whether there is a process to fork from, and the first word is no option of Python."""
    option = not words or (words[0].startswith("-") and words[0] not in ("-c", "-m"))
    return ADDRESS in os.environ and not option


def ask_for(files: list[int], *program) -> socket.socket:
    """Ask for a program with these files as its stdin, stdout and stderr, and return the line on
    which its number and its status are answered.
    """
    line = socket.socket(socket.AF_UNIX)
    line.connect("\0" + os.environ[ADDRESS])
    asked = json.dumps(program).encode()
    socket.send_fds(line, [len(asked).to_bytes(8, "big")], files)
    line.sendall(asked)
    return line


def answer_on(line: socket.socket) -> int:
    return int.from_bytes(line.recv(8), "big", signed=True)


def stand_in(executable: str, *words: str) -> None:
    """Be `python` for who started this process as that: start a program, hand on signals to it, and
    end as it does.
    """
    unbuffered = words[:1] == ("-u",)
    program = [*words[unbuffered:]]
    if "--images" in program[:-1]:
        count = program.index("--images") + 1
        program[count] = str(min(int(program[count]), MOST_IMAGES))
    number = 0
    if can_be_forked(program):
        how = [str(Path.cwd()), dict(os.environ), executable, unbuffered]
        line = ask_for([0, 1, 2], program, *how)
        number = answer_on(line)
    if not number:
        os.execv(sys.executable, [sys.executable, *words])

    def hand_on(signal_number, _):
        with suppress(ProcessLookupError):
            os.kill(number, signal_number)

    for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(each, hand_on)
    is_kernel = os.environ.get("JPY_PARENT_PID") == str(os.getppid())
    while is_kernel and not select.select([line], [], [], 1)[0]:
        if os.environ["JPY_PARENT_PID"] != str(os.getppid()):
            os._exit(1)  # as a kernel does when Jupyter was killed; the line closes
    status = answer_on(line)
    if status < 0:
        with suppress(OSError):  # SIGKILL has no other effect anyway
            signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    os._exit(status)


class Program:
    """A program that was started, and will be waited for."""

    def __init__(self, words, fresh=False, cwd=None, env=None, input=""):
        self.words, self.env = [str(word) for word in words], env or dict(os.environ)
        self.cwd = str(cwd or Path.cwd())
        sys.audit("subprocess.Popen", sys.executable, self.words, self.cwd, self.env)
        self.files = [tempfile.TemporaryFile() for _ in range(3)]  # noqa: SIM115, until the end
        self.files[0].write(input.encode())
        self.files[0].seek(0)
        fresh = fresh or not can_be_forked(self.words) or read_at_start(self.env) != OURS
        self.popen = self._start() if fresh else None
        numbers = [file.fileno() for file in self.files]
        self.line = None if fresh else ask_for(numbers, self.words, self.cwd, self.env)
        self.pid = self.popen.pid if fresh else answer_on(self.line)

    def _start(self) -> subprocess.Popen:
        kept = dict(zip(("stdin", "stdout", "stderr"), self.files, strict=True))
        return subprocess.Popen([sys.executable, *self.words], cwd=self.cwd, env=self.env, **kept)

    def wait(self, timeout: float = 300) -> subprocess.CompletedProcess:
        """Wait for its end, and return its status and what it wrote."""
        try:
            status = self._status(timeout)
            if status is None:
                os.kill(self.pid, signal.SIGKILL)
                self._status(timeout)
                raise subprocess.TimeoutExpired(self.words, timeout, *self.wrote())
            return subprocess.CompletedProcess(self.words, status, *self.wrote())
        finally:
            for each in [self.line, *self.files]:
                if each:
                    each.close()

    def _status(self, timeout: float) -> int | None:
        if self.line:
            ended = select.select([self.line], [], [], timeout)[0]
            return answer_on(self.line) if ended else None
        with suppress(subprocess.TimeoutExpired):
            return self.popen.wait(timeout)
        return None

    def wrote(self) -> tuple[str, str]:
        """Return what it has written so far, to stdout and to stderr."""
        texts = [os.pread(file.fileno(), 10**8, 0) for file in self.files[1:]]
        return tuple(text.decode(errors="replace") for text in texts)


# In the process to fork from. Each program is forked twice: the process in between waits for its
# end, and ends it when the test that asked for it is gone.


def listen(door: socket.socket) -> list:
    """Return what was asked for, in the process that is to be that program; end when nobody holds
    the other end of stdin.
    """
    while 0 not in select.select([door, 0], [], [])[0]:
        line, _ = door.accept()
        if "torch" not in sys.modules:  # not before somebody asks: many runs of tests need none
            prepare()
        if os.fork() == 0:
            door.close()
            return hand_over(line)
        line.close()
        collect_ended()
    collect_ended()
    sys.exit()


def collect_ended() -> None:
    """Take in the processes that have ended, so that their CPU seconds count as the tests'."""
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def prepare() -> None:
    """Import what most programs need, and what torch_xla imports of torch, which takes as long as
    Lightning; not torch_xla itself, which changes torch, nor pandas, which looks for a terminal.
    """
    import functorch.compile  # noqa: F401
    import ipykernel.kernelapp  # noqa: F401
    import lightning.pytorch  # noqa: F401
    import torch

    # Once it is asked, no fork may use a GPU; a module of the next import asks.
    asked, torch.cuda.is_available = torch.cuda.is_available, lambda: False
    import torch._inductor.fx_passes.post_grad

    torch.cuda.is_available = asked

    gc.collect()
    gc.freeze()


def hand_over(line: socket.socket) -> list:
    """Return what is asked for on a line in a process of its own, and answer with that one's number
    and status.
    """
    size, files, _, _ = socket.recv_fds(line, 8, 3)
    asked = json.loads(line.recv(int.from_bytes(size, "big"), socket.MSG_WAITALL))
    if read_at_start(asked[2]) != OURS:
        line.sendall(bytes(8))  # no program: it has to have a Python of its own
        os._exit(0)
    if pid := os.fork():
        with suppress(BrokenPipeError):  # who asked has gone: it is ended below
            line.sendall(pid.to_bytes(8, "big"))
        ended = os.pidfd_open(pid)
        if ended not in select.select([ended, line], [], [])[0]:
            os.kill(pid, signal.SIGKILL)
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        with suppress(BrokenPipeError):  # nobody waits any more
            line.sendall(status.to_bytes(8, "big", signed=True))
        os._exit(0)
    line.close()
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    return asked


def become(
    words: list[str], cwd: str, env: dict[str, str], executable: str = "", unbuffered: bool = False
) -> None:
    """Take over the folder, the variables and the path that a program begins with."""
    import torch
    from lightning.fabric.utilities import rank_zero

    if executable:
        sys.executable = executable
        os.setsid()  # a kernel may end its group
    if "ipykernel_launcher" in words:  # Lightning looks for a person when it is imported
        for module in [*sys.modules.values()]:
            if hasattr(module, "_IS_INTERACTIVE"):
                module._IS_INTERACTIVE = True
    sys.stdout = opened_anew(sys.stdout, line_buffering=os.isatty(1), write_through=unbuffered)
    sys.stderr = opened_anew(sys.stderr, line_buffering=True)
    os.chdir(cwd)
    multiprocessing.process.ORIGINAL_DIR = cwd  # where processes that it spawns look for its file
    os.environ.clear()
    os.environ.update(env)
    place = {"-c": "", "-m": cwd}.get(words[0], str(Path(words[0]).resolve().parent))
    sys.path[:1] = [place, *filter(None, env.get("PYTHONPATH", "").split(os.pathsep))]
    for rule in filter(None, env.get("PYTHONWARNINGS", "").split(",")):
        action, _, message = rule.partition(":")
        warnings.filterwarnings(action, re.escape(message))
    if "OMP_NUM_THREADS" in env:
        torch.set_num_threads(int(env["OMP_NUM_THREADS"]))
    rank_zero.rank_zero_only.rank = rank_zero._get_rank() or 0


def opened_anew(stream: io.TextIOWrapper, **how: bool) -> io.TextIOWrapper:
    """Open a stream for what its number leads to now: who forked this may have had a file there,
    which can seek, and a pipe cannot.
    """
    size = 0 if how.get("write_through") else -1
    file = open(stream.fileno(), "wb", size, closefd=False)  # noqa: SIM115, until the end
    return io.TextIOWrapper(file, stream.encoding, stream.errors, **how)


def run(words: list[str]) -> None:
    """Run a program as Python does."""
    sys.argv = words[1:] if words[0] == "-m" else words
    if words[0] == "-m":
        runpy.run_module(words[1], run_name="__main__", alter_sys=True)
        return
    main = types.ModuleType("__main__")
    sys.modules["__main__"] = main
    if words[0] == "-c":
        sys.argv = ["-c", *words[2:]]
        code = compile(words[1], "<string>", "exec")
    else:
        main.__file__ = words[0]
        code = compile(Path(words[0]).read_text("utf-8"), words[0], "exec")
    exec(code, vars(main))


def end_of(words: list[str]) -> int:
    """Run a program to its end, and return its status."""
    try:
        run(words)
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            return end.code or 0
        print(end.code, file=sys.stderr)
        return 1
    except BaseException as error:
        ours = error.__traceback__.tb_next.tb_next  # this function and `run`
        sys.excepthook(type(error), error.with_traceback(ours), ours)
        if isinstance(error, KeyboardInterrupt):
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            os.kill(os.getpid(), signal.SIGINT)
        return 1
    return 0


if __name__ == "__main__" and not sys.argv[1].isdecimal():
    stand_in(*sys.argv[1:])
if __name__ == "__main__":
    this = sys.modules["__main__"]  # which lives on while another takes its name
    asked = listen(socket.socket(fileno=int(sys.argv[1])))
    become(*asked)
    status = end_of(asked[0])
    # All that Python does at its end, but for taking apart a thousand modules.
    threading._shutdown()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status & 0xFF)
