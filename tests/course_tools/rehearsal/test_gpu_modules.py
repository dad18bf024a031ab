"""What torch says of its GPUs."""

import time

import pytest
import torch

from course_tools.rehearsal import rehearse

MIB = 2**20


def test_a_device_is_refused_or_ignored_as_pytorch_does():
    with pytest.raises(ValueError) as of_torch:
        torch.cuda._utils._get_device_index("cpu", optional=True)
    with rehearse(gpus=2):
        with pytest.raises(ValueError) as refused:
            torch.cuda.memory_allocated("cpu")
        torch.cuda.set_device(1)
        torch.cuda.set_device(-1)
        assert torch.cuda.current_device() == 1
    assert str(refused.value) == str(of_torch.value)


def test_the_time_between_two_events_is_in_milliseconds():
    with rehearse():
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        time.sleep(0.02)
        end.record()
        between = start.elapsed_time(end)  # torch.cuda.Event: "time elapsed in milliseconds"
        assert 20 <= between < 10_000
        end.wait()  # only a stream would, and the event stays what it was
        assert start.elapsed_time(end) == between
        start.record()  # torch.cuda.Event.record: an event is of the last time it was recorded
        assert start.elapsed_time(end) < 0


def test_each_card_says_what_it_was_made_as():
    with rehearse():
        card = torch.cuda.get_device_properties(0)
        assert (card.major, card.minor, card.total_memory) == (8, 0, 16 * 1024**3)
    with rehearse(gpus=2, memory="2 GiB", capability=(7, 5)):
        assert torch.cuda.device_count() == torch.accelerator.device_count() == 2
        assert torch.cuda.is_available() and torch.cuda.get_device_capability(1) == (7, 5)
        assert torch.cuda.get_arch_list() == ["sm_75"]
        # NVIDIA, Turing Architecture Whitepaper, of the T4
        card = torch.cuda.get_device_properties(0)
        cores = card.multi_processor_count, card.max_threads_per_multi_processor, card.warp_size
        assert (*cores, card.L2_cache_size) == (40, 1024, 32, 4 * MIB)
        # NVIDIA, Turing Tuning Guide: 64 thousand registers and 64 KiB a multiprocessor, all of it
        # for one block that asks for it, and 48 KiB for one that does not
        assert card.regs_per_multiprocessor == card.shared_memory_per_multiprocessor == 2**16
        assert (card.shared_memory_per_block_optin, card.shared_memory_per_block) == (65536, 49152)
        card = torch.cuda.get_device_properties(1)
        assert (card.major, card.minor, card.total_memory) == (7, 5, 2 * 1024**3)
        assert card.name == torch.cuda.get_device_name() and "not there" in card.name


@pytest.mark.parametrize(("capability", "has"), [((7, 5), False), ((8, 0), True), ((9, 0), True)])
def test_tensor_cores_have_bfloat16_and_tf32_from_8_0_on(capability, has):
    # NVIDIA, CUDA C++ Programming Guide, "Compute Capabilities"
    with rehearse(capability=capability):
        assert torch.cuda.is_bf16_supported(including_emulation=False) == has
        assert torch.cuda.is_bf16_supported()  # PyTorch counts what is emulated
        if hasattr(torch.cuda, "is_tf32_supported"):
            assert torch.cuda.is_tf32_supported() == has


def test_the_current_card_is_the_one_that_was_chosen_last_and_a_block_gives_it_back():
    with rehearse(gpus=3):
        torch.cuda.set_device(1)
        with torch.cuda.device(2):
            assert torch.cuda.current_device() == torch.accelerator.current_device_index() == 2
            rows = torch.ones(1, device="cuda")
        assert (rows.get_device(), torch.ones(1).get_device()) == (2, -1)
        assert torch.cuda.current_device() == 1
        for nothing in (None, -1):
            with torch.cuda.device(nothing):
                assert torch.cuda.current_device() == 1
        with torch.cuda.device(0), torch.cuda.device_of(rows):
            assert torch.cuda.current_device() == 2
        with torch.cuda.device_of(torch.ones(1)):
            assert torch.cuda.current_device() == 1
        assert torch.cuda._exchange_device(2) == 1 and torch.cuda._exchange_device(-1) == 2
        assert torch.cuda.current_device() == 2


def test_the_memory_of_a_card_is_counted_now_and_at_its_peak():
    with rehearse(gpus=2, memory="8 MiB") as rehearsal:
        kept = torch.ones(MIB // 4, device="cuda:1")
        freed = torch.ones(MIB // 2, device="cuda:1")
        del freed
        torch.ones(1, device="cuda:1")
        assert torch.cuda.memory_allocated() == torch.cuda.max_memory_allocated() == 0
        assert torch.cuda.memory_allocated(1) == torch.cuda.memory_reserved(1) == kept.nbytes
        assert torch.cuda.max_memory_allocated(1) == torch.cuda.max_memory_reserved(1) == 3 * MIB
        stats = torch.cuda.memory_stats(1)
        assert stats["allocated_bytes.all.current"] == MIB
        assert stats["allocated_bytes.all.peak"] == 3 * MIB
        assert "1.00 MiB, peak 3.00 MiB" in torch.cuda.memory_summary(1)
        assert torch.cuda.mem_get_info(1) == (7 * MIB, 8 * MIB)
        free = "GPU 1 has a total capacity of 8.00 MiB of which 7.00 MiB is free"
        with pytest.raises(torch.OutOfMemoryError, match=f"8.00 MiB. {free}.*has 1.00 MiB"):
            torch.ones(2 * MIB, device="cuda:1")
        torch.cuda.reset_peak_memory_stats(1)
        assert torch.cuda.max_memory_allocated(1) == MIB
    assert rehearsal.report.peak_bytes == (0, 3 * MIB)  # whatever the program has reset


def test_a_mac_says_how_much_memory_there_is():
    with rehearse("mps", memory="2 GB"):
        rows = torch.ones(256, device="mps")
        assert torch.mps.recommended_max_memory() == 2 * 10**9
        assert torch.mps.current_allocated_memory() == rows.nbytes


def test_random_numbers_are_the_cpus_and_their_state_can_be_kept():
    with rehearse(gpus=2) as rehearsal:
        kept = torch.cuda.get_rng_state_all()
        assert len(kept) == len(torch.cuda.default_generators) == 2
        first = torch.rand(3, device="cuda").tolist()
        for put_back in (
            lambda: torch.cuda.set_rng_state_all(kept),
            lambda: torch.cuda.set_rng_state(kept[0]),
        ):
            put_back()
            assert torch.rand(3, device="cuda").tolist() == first
        assert not any("it was ignored" in each for each in rehearsal.report.remarks)
        torch.cuda.set_rng_state(torch.zeros(16, dtype=torch.uint8))  # as large as a real GPU's
        assert any("it was ignored" in each for each in rehearsal.report.remarks)


def test_a_seed_of_the_gpu_alone_is_kept_and_the_report_says_that_no_number_is_its():
    def seeds():
        return torch.cuda.initial_seed(), torch.initial_seed()

    def remarks():  # of seeds: libraries that other tests loaded have remarks of their own
        return [each for each in rehearsal.report.remarks if "seed" in each]

    with rehearse(gpus=2) as rehearsal:
        torch.manual_seed(7)
        assert seeds() == (7, 7)
        torch.cuda.manual_seed_all(7)  # as helpers for reproducible runs do, which changes nothing
        assert remarks() == []
        first = torch.rand(3, device="cuda").tolist()
        torch.cuda.manual_seed(5)
        assert seeds() == (5, 7)
        torch.cuda.set_device(1)
        assert seeds() == (7, 7)  # torch.cuda.manual_seed: "for the current GPU"
        (remark,) = remarks()
        assert "torch.cuda.manual_seed changed no numbers" in remark
        assert "torch.manual_seed, which seeds both" in remark
        torch.manual_seed(7)
        assert torch.rand(3, device="cuda").tolist() == first


def test_only_memory_that_was_pinned_is_pinned():
    with rehearse():
        plain = torch.ones(3)
        pinned = plain.pin_memory()
        assert pinned.is_pinned() and pinned.pin_memory() is pinned and not plain.is_pinned()
        assert not torch.ones(3, device="cuda").is_pinned()
        assert torch.ones(3, pin_memory=True).is_pinned() and pinned.tolist() == [1, 1, 1]


def test_optimizers_get_their_tensors_by_device_and_type():
    with rehearse(gpus=2):
        one, other = torch.ones(1, device="cuda:0"), torch.ones(1, device="cuda:1")
        half = torch.ones(1, device="cuda:0", dtype=torch.float16)
        lists = [[one, other, half, one], ["a", "b", "c", "d"]]
        groups = torch._C._group_tensors_by_device_and_dtype(lists, True)
        found = {key: (columns[1], indices) for key, (columns, indices) in groups.items()}
        assert found == {
            (torch.device("cuda:0"), torch.float32): (["a", "d"], [0, 3]),
            (torch.device("cuda:1"), torch.float32): (["b"], [1]),
            (torch.device("cuda:0"), torch.float16): (["c"], [2]),
        }


def test_tensors_that_are_gathered_and_added_up_come_from_all_cards():
    comm = torch.nn.parallel.comm
    with rehearse(gpus=2):
        halves = comm.scatter(torch.arange(8.0).reshape(2, 4), [0, 1], dim=1)
        assert [half.get_device() for half in halves] == [0, 1]
        first, _ = comm.scatter(torch.arange(8.0).reshape(2, 4), [0, 1])  # by rows, if not told
        assert first.tolist() == [[0, 1, 2, 3]]
        assert halves[1].tolist() == [[2, 3], [6, 7]]
        together = comm.gather(halves, dim=1, destination=-1)
        assert together.tolist() == [[0, 1, 2, 3], [4, 5, 6, 7]] and not together.is_cuda
        for card in (0, 1):
            total = comm.reduce_add(halves, destination=card)
            assert total.get_device() == card and total.tolist() == [[2, 4], [10, 12]]
        assert halves[0].tolist() == [[0, 1], [4, 5]]
