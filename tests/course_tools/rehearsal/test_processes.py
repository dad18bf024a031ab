"""Other processes: each believes in the simulated GPUs too."""

import multiprocessing

import pytest
import torch

from course_tools.rehearsal import rehearse
from course_tools.rehearsal.processes import Rehearsed
from course_tools.rehearsal.rehearse import begin
from course_tools.rehearsal.setting import setting_of


class Cards(torch.utils.data.Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, index):
        return torch.ones(2).cuda()


@pytest.mark.process
def test_a_worker_that_touches_the_gpu_fails_as_after_a_fork():
    with rehearse():
        torch.ones(1, device="cuda")
        loader = torch.utils.data.DataLoader(Cards(), num_workers=1, multiprocessing_context="fork")
        with pytest.raises(RuntimeError, match="Cannot re-initialize CUDA in forked subprocess"):
            next(iter(loader))


def test_a_tensor_that_is_sent_to_another_process_stays_on_its_gpu():
    queue = torch.multiprocessing.get_context("spawn").SimpleQueue()
    with rehearse(gpus=2) as rehearsal:
        queue.put([torch.ones(2, device="cuda:1").share_memory_(), torch.ones(2)])
        one, other = queue.get()
        assert rehearsal.report.copies == ()
        assert (one * 2).device == torch.device("cuda:1") and other.device.type == "cpu"


@pytest.mark.process
def test_a_process_that_starts_anew_believes_in_the_gpu_too():
    spawn = multiprocessing.get_context("spawn")
    with rehearse("cuda", hide_real=True):
        process = spawn.Process(target=torch.nn.Linear, args=(1, 1), kwargs={"device": "cuda"})
        process.start()
        process.join()
    assert process.exitcode == 0  # without a GPU it is 1


@pytest.mark.parametrize(
    ("command", "device", "told"),
    [(True, "cuda", True), (True, "cpu", False), (False, "cuda", False)],
)
def test_another_process_reports_what_it_did_on_a_gpu_if_the_first_one_does(
    command, device, told, capsys, tmp_path
):
    setting, used_folder = setting_of("cuda", 1, None, (8, 0)), str(tmp_path) if command else ""
    Rehearsed(lambda: torch.ones(2, device=device) + 1, begin, setting, used_folder)()
    assert ("rehearsal, MainProcess: " in capsys.readouterr().err) == told
    assert bool(list(tmp_path.iterdir())) == told
