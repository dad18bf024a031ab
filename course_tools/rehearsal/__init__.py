"""A GPU that is not there: a program believes in it, and fails with its real errors, on a CPU.

    from course_tools.rehearsal import rehearse

    with rehearse("cuda", gpus=1, memory="16 GB", capability=(7, 5)) as rehearsal:
        train()                   # torch.cuda.is_available() is True in here
    rehearsal.report              # copies, waits, the peak of the memory, what was not looked at

    python -m course_tools.rehearsal [--device cuda|mps|xpu] [--gpus 2] [--memory 16GB]
        [--capability 7.5] [--steps N] SCRIPT ARGUMENTS

    pytest_plugins = ["course_tools.rehearsal.pytest_fixture"]       # in a conftest.py of yours
    def test_it_runs_on_a_gpu(rehearsed_gpu): ...

Values are computed on the CPU. On which device each tensor would be is kept with its storage;
each operation is checked by the rules of the device, and an error is PyTorch's own, with a note on
which tensor was left behind and the line that made it. No time in a rehearsal is a GPU's.

The modules, each of which uses only those below it:

    __main__, pytest_fixture   begin a rehearsal for a script, and for a test
    rehearse      the block: what there is, the names to replace, the watch; puts everything back
    tensors, makers, gradients, storages, gpu_modules, data_parallel, processes, distributed,
    untraced, autocast, profiling the names that are replaced, and what stands there meanwhile
    operations    the watch: sees each operation, checks it, runs it on the CPU, marks its results
    rules         which operation accepts what on which device, as tables, and PyTorch's words
    report        what was seen, in words; compiled_code: what nobody looked into
    placement     the mark on each storage that says where it would be, and moves between devices
    world         what there is meanwhile: the setting that was asked for, the cards, what was seen
    setting       which GPUs were asked for; seen: what was counted; memory: how full a card is
    lines         the user's line; replacing: replaces names of torch, and puts them back
"""

from course_utils.missing_packages import explain_missing_package

with explain_missing_package():
    from course_tools.rehearsal.rehearse import Rehearsal, rehearse
    from course_tools.rehearsal.report import Occurrence, Report

__all__ = ["Occurrence", "Rehearsal", "Report", "rehearse"]
