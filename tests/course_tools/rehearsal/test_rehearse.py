"""A whole step on a simulated GPU: what fails as on a real one, what does not, what is left."""

import contextlib
import inspect
import multiprocessing
import subprocess
import sys
import threading
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from gpu_programs import ERRORS, PASSED, REFUSED
from torch import nn
from torch._higher_order_ops.scan import scan
from torch.optim.optimizer import _global_optimizer_post_hooks

from course_tools.rehearsal import rehearse
from course_tools.rehearsal.rehearse import LastStep, begin
from course_tools.rehearsal.setting import SIMULATED, Command, setting_of, size_bytes


@pytest.mark.filterwarnings("ignore:flex_attention called without")
@pytest.mark.parametrize("program", REFUSED, ids=lambda each: each.__name__)
def test_what_a_gpu_refuses_fails_with_pytorchs_words(program):
    with rehearse(), pytest.raises(ERRORS, match=REFUSED[program]):
        program("cuda")


@pytest.mark.filterwarnings("ignore:flex_attention called without")
@pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated")  # by PyTorch's own hessian
@pytest.mark.parametrize("program", PASSED, ids=lambda each: each.__name__)
def test_what_a_gpu_accepts_raises_no_false_alarm(program):
    with rehearse():
        assert program("cuda").device == torch.device("cuda:0")


def test_an_error_names_the_tensor_left_behind_and_the_line_that_made_it():
    with rehearse():
        mask = torch.ones(3)
        with pytest.raises(RuntimeError) as caught:
            torch.ones(3, device="cuda") + mask
    (note,) = caught.value.__notes__
    assert "`mask`" in note and "mask = torch.ones(3)" in note and ".to('cuda:0')" in note


def test_a_view_or_a_change_inside_the_rehearsal_is_not_what_made_an_older_tensor():
    older, more = torch.ones(4), torch.ones(4)
    with rehearse():
        for change in (lambda: older[:4], lambda: older.add_(more)):
            rows = change()
            with pytest.raises(RuntimeError) as caught:
                torch.ones(4, device="cuda") + rows
            assert "made before the rehearsal began" in caught.value.__notes__[0]


def parameters_of(function):
    function = getattr(function, "__func__", function)
    try:
        found = inspect.signature(function).parameters
    except (TypeError, ValueError):  # written in C++
        return {}
    return {name: each.default for name, each in found.items() if each.default is not each.empty}


@pytest.mark.parametrize("kind", SIMULATED)
def test_what_is_left_out_in_a_call_is_what_pytorch_takes_for_it(kind):
    compared, others = 0, []
    with rehearse(kind) as rehearsal:
        for owner, name, before in rehearsal._world.originals:
            of_torch, ours = parameters_of(before), parameters_of(vars(owner)[name])
            for each in of_torch.keys() & ours.keys() - {"buffer_size"}:  # nothing is gathered here
                compared += 1
                # a device of this kind without a number is the current one, as is None
                if ours[each] != (None if of_torch[each] == kind else of_torch[each]):
                    others.append((owner, name, each, ours[each]))
    assert others == [] and compared > 50


def every_name():
    """Return what each name is in each module of PyTorch, in each class there, and in threading."""
    owners = {threading.Thread, multiprocessing.process.BaseProcess, subprocess.Popen}
    modules = [each for name, each in list(sys.modules.items()) if name.split(".")[0] == "torch"]
    for module in filter(None, modules):
        owners.add(module)
        owners |= {each for each in vars(module).values() if issubclass(type(each), type)}
    found = {(owner, name): value for owner in owners for name, value in vars(owner).items()}
    counted = ("next_id", "_abc_impl")  # of hooks, and a cache
    return {key: value for key, value in found.items() if key[1] not in counted}


def train(kind):
    network = nn.Sequential(nn.Linear(2, 2), nn.Dropout()).to(kind)
    optimizer = torch.optim.Adam(network.parameters())
    with torch.autocast(kind, torch.float16):
        network(torch.ones(3, 2, device=kind)).sum().backward()
    optimizer.step()


@pytest.mark.parametrize(
    ("kind", "ending"),
    [*((kind, None) for kind in SIMULATED), ("cuda", RuntimeError), ("xpu", KeyboardInterrupt)],
)
def test_every_name_is_torchs_again_however_a_block_ends(kind, ending):
    with rehearse(kind):
        train(kind)  # what is loaded when it is first used is loaded
    before, hooks = every_name(), dict(_global_optimizer_post_hooks)
    ends = pytest.raises(ending) if ending else contextlib.nullcontext()
    with ends, rehearse(kind), rehearse(kind):
        train(kind)
        torch.set_default_device(kind)
        assert torch.ones(1).device.type == kind
        if ending:
            raise ending
    after = every_name()
    assert {key for key in before if before[key] is not after.get(key)} == set()
    assert after.keys() == before.keys() and _global_optimizer_post_hooks == hooks
    assert torch.ones(1).device.type == "cpu" and not torch.accelerator.is_available()
    # A default that nobody chose is none again: a tensor of another device is not moved to it.
    assert torch.overrides._get_current_function_mode() is None


def test_a_default_device_that_the_program_had_before_is_its_default_again():
    torch.set_default_device("meta")
    try:
        with rehearse():
            torch.set_default_device("cuda")
        assert torch.ones(1).device.type == "meta"
    finally:
        torch.set_default_device(None)
        vars(torch._GLOBAL_DEVICE_CONTEXT).pop("device_context", None)


def test_modules_that_may_not_load_are_no_obstacle(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch_kept_out", None)  # as Python's import allows
    monkeypatch.delitem(sys.modules, "torch_later", raising=False)
    with rehearse():
        monkeypatch.setitem(sys.modules, "torch_later", None)
        assert torch.ones(1).cuda().is_cuda
    assert not torch.ones(1).is_cuda and not torch.cuda.is_available()


@pytest.mark.skipif(torch.__version__ < "2.7", reason="scan of PyTorch 2.6 has no backward pass")
def test_scan_is_a_loop_on_the_gpu_also_backward():
    rows = torch.arange(12.0).reshape(4, 3).requires_grad_()
    total, products = torch.zeros(3), []
    for row in rows:
        products.append(total * row)
        total = total + row
    torch.stack(products).sum().backward()
    with rehearse():
        moved = rows.detach().cuda().requires_grad_()
        last, found = scan(
            lambda total, row: (total + row, total * row), torch.zeros(3, device="cuda"), moved
        )
        found.sum().backward()
        places = [each.device.type for each in (last, found, moved.grad)]
    assert places == ["cuda"] * 3 and torch.equal(moved.grad, rows.grad)
    assert torch.equal(last, total) and torch.equal(found, torch.stack(products))


def test_numpys_memory_is_not_the_gpus():
    numbers = np.ones(2, np.float32)
    with rehearse():
        copied = [torch.as_tensor(numbers, device="cuda"), torch.asarray(numbers, device="cuda")]
        numbers[:] = 5
        assert [each.tolist() for each in copied] == [[1, 1], [1, 1]]


def test_a_thread_that_began_before_is_reported():
    start, asked = threading.Event(), []

    def work():
        start.wait()
        asked.append(torch.ones(2).to("cuda"))

    thread = threading.Thread(target=work)
    thread.start()
    with rehearse() as rehearsal:
        start.set()
        thread.join()
    assert len(asked) == 1
    assert any("A thread that was started before" in each for each in rehearsal.report.remarks)


@pytest.mark.parametrize("kind", SIMULATED)
def test_what_torch_has_under_two_names_stays_one_thing(kind):
    package = getattr(torch, kind)
    parts = [getattr(package, name, None) for name in ("memory", "random", "streams")]
    shared = [
        (part, name)
        for part in parts
        for name, value in vars(part or object).items()
        if vars(package).get(name, part) is value
    ]
    with rehearse(kind):
        assert [each for each in shared if getattr(*each) is not getattr(package, each[1])] == []
        if kind == "cuda":
            torch.cuda.random.set_rng_state(torch.cuda.random.get_rng_state())


CELLS = """
import signal
import torch
from course_tools.rehearsal import rehearse
plain = torch.Tensor.to, torch.Tensor.register_hook, torch.autograd.Function.apply
# --
with rehearse() as rehearsal:
    rows = torch.ones(2).cuda() * 2
    signal.raise_signal(signal.SIGINT)
# --
total = (rows + torch.ones(2)).sum()
[rehearsal.report.on_gpu > 0, torch.cuda.is_available(), rows.device.type, total]
# --
with rehearse() as again:
    rows = torch.ones(2).cuda() + torch.ones(2)
# --
plain == (torch.Tensor.to, torch.Tensor.register_hook, torch.autograd.Function.apply)
"""


@pytest.mark.process
def test_other_cells_of_a_kernel_are_untouched_also_after_an_interrupt_or_an_error():
    nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    cells = [nbformat.v4.new_code_cell(each.strip()) for each in CELLS.split("# --")]
    notebook = nbformat.v4.new_notebook(cells=cells)
    client = nbclient.NotebookClient(notebook, timeout=120, allow_errors=True)
    client.execute()
    _, interrupted, after, error, last = [each.outputs[-1:] for each in cells]
    assert interrupted[0].ename == "KeyboardInterrupt"
    assert after[0].data["text/plain"] == "[True, False, 'cpu', tensor(6.)]"
    assert error[0].ename == "RuntimeError" and "same device" in error[0].evalue
    assert last[0].data["text/plain"] == "True"


def test_a_real_gpu_is_hidden_only_on_request(monkeypatch):
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: True)
    here = torch.device("cuda:0")
    monkeypatch.setattr(torch.accelerator, "current_accelerator", lambda *_: here)
    with pytest.raises(RuntimeError, match=r"here \(cuda:0\).*hide_real"), rehearse():
        pass
    with rehearse(gpus=2, hide_real=True):
        assert torch.accelerator.device_count() == torch.cuda.device_count() == 2
    assert torch.accelerator.is_available() and torch.accelerator.current_accelerator() is here


def test_a_rehearsal_inside_another_is_the_same_and_may_be_repeated():
    for _ in range(2):
        with rehearse() as outer:
            with rehearse() as inner:
                rows = torch.ones(2, device="cuda")
            assert (rows + rows).device.type == "cuda"
            assert inner.report.operations <= outer.report.operations
    assert rows.device.type == "cpu"


@pytest.mark.parametrize(
    "asked, told",
    [
        ({"kind": "tpu"}, "'tpu' cannot be rehearsed"),
        ({"gpus": 0}, "gpus=0"),
        ({"gpus": True}, "gpus=True"),
        ({"gpus": 65}, "1 to 64"),
        ({"kind": "mps", "gpus": 2}, "1 to 1"),
        ({"memory": "16 apples"}, "not a size"),
        ({"memory": -1}, "not a size"),
        ({"memory": 0}, "not a size"),
        ({"memory": True}, "not a size"),
        ({"capability": 7.5}, r"capability=7\.5"),
        ({"capability": (7, 0.5)}, "two whole numbers"),
        ({"capability": (2, 9)}, "two whole numbers"),
    ],
)
def test_what_cannot_be_rehearsed_is_refused_in_a_sentence(asked, told):
    with pytest.raises(ValueError, match=told), rehearse(**asked):
        pass
    with rehearse(gpus=64, memory=1, capability=(3, 0)):  # the most and the least
        assert torch.cuda.device_count() == 64


def test_sizes_are_read_as_people_write_them():
    for power, letter in enumerate("KMGT", 1):  # IEC 80000-13
        assert size_bytes(f"16 {letter}B") == 16 * 1000**power
        assert size_bytes(f"16{letter.lower()}iB") == 16 * 1024**power
    assert size_bytes(512) == size_bytes("512 B") == 512 and size_bytes("1.5 MB") == 1_500_000


@pytest.mark.parametrize(
    ("inner", "fits"),
    [
        ({}, True),
        ({"memory": "1 GB", "capability": (7, 5)}, True),
        ({"memory": "1 KB"}, False),
        ({"capability": (9, 0)}, False),
        ({"gpus": 2}, False),
        ({"kind": "mps"}, False),
    ],
    ids=str,
)
def test_a_rehearsal_inside_another_is_that_one_or_refused(inner, fits):
    ends = contextlib.nullcontext() if fits else pytest.raises(ValueError, match="is running")
    with rehearse(memory="1 GB", capability=(7, 5)), ends, rehearse(**inner):
        assert torch.cuda.get_device_properties(0).total_memory == 10**9


def test_a_tensor_is_named_as_the_program_reaches_it():
    with rehearse():
        mask = torch.ones(3)
        holder = SimpleNamespace(one=1, mask=torch.ones(3), two=2)
        rows, table = [*range(98), torch.ones(3)], {"mask": torch.ones(3)}
        layer = nn.Sequential(nn.BatchNorm1d(3))
        reached = {
            "mask": lambda: mask,
            "holder.mask": lambda: holder.mask,
            "rows[98]": lambda: rows[98],
            "table['mask']": lambda: table["mask"],
            "layer.0.weight": lambda: layer[0].weight,
            "layer.0.running_mean": lambda: layer[0].running_mean,
        }
        for name, reach in reached.items():
            with pytest.raises(RuntimeError) as caught:
                torch.ones(3, device="cuda") + reach()
            assert f"`{name}`" in caught.value.__notes__[0]


def test_a_program_ends_after_as_many_steps_as_were_asked_for():
    weights = [torch.ones(1, requires_grad=True)]
    optimizer = torch.optim.SGD(weights, lr=0.1)
    command = Command(("train.py",), last_step=2)
    with pytest.raises(LastStep), begin(setting_of("cuda", 1, None, (8, 0)), command) as rehearsal:
        for _ in range(5):
            optimizer.step()
    assert rehearsal.report.steps == 2


@pytest.mark.parametrize("kind", SIMULATED)
def test_what_is_a_class_in_pytorch_is_one_in_a_rehearsal(kind):
    # libraries name them in annotations (torch.cuda.CUDAGraph | None) and ask isinstance
    places = (torch, getattr(torch, kind), torch.cuda.graphs, torch.accelerator, nn)

    def classes():
        names = [(place, name) for place in places for name in vars(place)]
        return {pair for pair in names if isinstance(getattr(*pair), type)}

    before = classes()
    with rehearse(kind):
        assert before - classes() == set()
