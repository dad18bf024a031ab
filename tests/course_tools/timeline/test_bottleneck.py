"""Verdicts on evidence made by hand, and on figures of GPUs that others recorded."""

import re
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch.utils.data import BatchSampler, DataLoader, RandomSampler, Subset, TensorDataset

from course_tools.timeline import bottleneck
from course_tools.timeline.bottleneck import PARTS, judge
from course_tools.timeline.loop_record import LoaderFacts, LoopRecord
from course_tools.timeline.run_loop import facts_of

# a step of 10 ms on a GPU: 1 ms is spent on the batch, and the device computes for 1 ms
SEEN = LoopRecord(
    device="cuda:0",
    kind="cuda",
    step_s=10e-3,
    fetch_s=1e-3,
    arithmetic_s=1e-3,
    copies_s=0.5e-3,
    operations=100,
    loader=LoaderFacts(cores=8, waits=False),
)
LOADER = {"fetch_s": 7e-3}


def test_twenty_steps_are_timed_in_half_a_minute_at_most_unless_others_are_asked_for(monkeypatch):
    asked = []
    monkeypatch.setattr(
        bottleneck, "record_loop", lambda *_, **settings: asked.append(settings) or SEEN
    )
    bottleneck.find_bottleneck(print, [0], device="cpu")
    bottleneck.find_bottleneck(print, [0], device="cpu", steps=1, max_s=2.0)
    assert asked == [{"steps": 20, "max_s": 30.0}, {"steps": 1, "max_s": 2.0}]
    with pytest.raises(ValueError, match="steps is 0"):
        bottleneck.find_bottleneck(print, [0], device="cpu", steps=0)


def in_ms(found):
    return [round(1e3 * found.parts_s[part], 3) for part in PARTS]


@pytest.mark.parametrize(
    ("changes", "limit", "parts_ms"),
    [
        ({}, "launches", [1, 0.5, 0, 0, 7.5, 0, 1]),
        ({"arithmetic_s": 8e-3}, "arithmetic", [1, 0.5, 0, 0, 0.5, 0, 8]),
        ({"memory_s": 7e-3}, "memory", [1, 0.5, 0, 0, 0.5, 7, 1]),
        ({"copies_s": 7e-3}, "copies", [1, 7, 0, 0, 1, 0, 1]),
        ({"exchange_s": 6e-3}, "other ranks", [1, 0.5, 6, 0, 1.5, 0, 1]),
        ({"python_s": 7e-3}, "own Python", [1, 0.5, 0, 7, 0.5, 0, 1]),
        (LOADER, "loader", [7, 0.5, 0, 0, 1.5, 0, 1]),
        # the device is busy for 6 of 10 ms, of which neither half is longer than the launches
        ({"arithmetic_s": 3.2e-3, "memory_s": 2.8e-3, "fetch_s": 0.0}, "arithmetic", None),
        # the device worked for nearly the whole time in which the loop waited for its batch
        (
            {**LOADER, "exposed": 0.1, "arithmetic_s": 8e-3},
            "arithmetic",
            [0.7, 0.5, 0, 0, 0.8, 0, 8],
        ),
        # the profiled steps were slower than the others
        ({"step_s": 8e-3, "arithmetic_s": 14.5e-3}, "arithmetic", [0.5, 0.25, 0, 0, 0, 0, 7.25]),
    ],
)
def test_each_part_of_a_step_on_a_gpu_can_be_the_bottleneck(changes, limit, parts_ms):
    found = judge(replace(SEEN, **changes))
    assert found.limit == limit
    assert parts_ms in (None, in_ms(found))
    assert sum(map(found.share, PARTS)) == pytest.approx(1)
    assert (found.workers_to_try is not None) == (limit == "loader")
    # a part of which nothing was seen is not shown, and the others are in milliseconds
    shown = [part for part in PARTS if found.parts_s[part] or part not in ("other ranks", "memory")]
    table = found.to_frame()
    assert list(table.index) == shown and sum(table["share"]) == pytest.approx(1)
    assert list(table["ms per step"]) == [1e3 * found.parts_s[part] for part in shown]


@pytest.mark.parametrize(
    ("changes", "advice"),
    [
        ({}, "reduce-overhead"),
        ({"fetch_s": 2e-3, "arithmetic_s": 0.0}, "reduce-overhead"),
        ({"kind": "cpu"}, "merges elementwise operations"),
        ({"kind": "cpu", "reads": 21.0}, "21 of the step's calls read a single value"),
        ({"kind": "cpu", "reads": 19.0, "waits_s": 2e-3}, "merges elementwise operations"),
        ({"python_s": 7e-3}, "every hundredth step"),
        ({"copies_s": 7e-3}, "pin_memory=True"),
        ({"exchange_s": 6e-3}, "wait for the slowest"),
        ({"memory_s": 7e-3}, "fuses"),
        ({"arithmetic_s": 8e-3}, "autocast"),
        ({"arithmetic_s": 8e-3, "kind": "cpu"}, "a GPU"),
        ({"python_s": 7e-3, "loader": LoaderFacts(is_dataloader=False)}, "shows no DataLoader"),
        ({"fetch_s": 7e-3, "fetches": 1.5}, "A step fetches 1.5 batches here"),
    ],
)
def test_the_advice_fits_the_bottleneck(changes, advice):
    said = judge(replace(SEEN, **changes)).advice
    assert advice in said and "After that" not in said


@pytest.mark.parametrize(
    ("reads", "waits_s", "named"),
    [(1, 20e-6, False), (1, 1.4e-3, False), (1, 1.6e-3, True), (0.01, 1.6e-3, False)],
)
def test_a_read_is_advised_against_where_it_costs_something(reads, waits_s, named):
    # TraceLens' traces of a small BERT (AMD-AGI/TraceLens 171dd74): one read takes 0.02 of 4.4 ms
    advice = judge(replace(SEEN, reads=reads, waits_s=waits_s)).advice
    assert ("for 16% of it" in advice) == ("once per epoch" in advice) == named and (
        "a larger batch" in advice
    ) != named


@pytest.mark.parametrize(
    ("workers", "step_s", "fetch_s", "cores", "to_try"),
    [
        (0, 0.050, 0.040, 8, 4),  # 40 ms for a batch, 10 ms for the rest
        (2, 0.025, 0.015, 8, 5),  # two workers give one each 25 ms, so each needs 50 ms
        (0, 0.050, 0.040, 4, 4),
        # one loop, asked without workers and with two: the rest of the step is short, and seems
        # to be 6.1 ms or 3.4 ms, which makes 12 or 20 workers; four for each core are the limit
        (0, 0.0771, 0.0710, 2, 8),
        (2, 0.0336, 0.0302, 2, 8),
        # nothing but the loader: the rest counts as a thousandth of the step
        (0, 0.0500, 0.0500, None, 1000),
    ],
)
def test_a_loader_that_waits_gets_workers_that_keep_up_but_few_per_core(
    workers, step_s, fetch_s, cores, to_try
):
    facts = LoaderFacts(workers=workers, cores=cores, waits=True)
    seen = LoopRecord("cuda:0", "cuda", step_s, fetch_s, loader=facts)
    found = judge(seen)
    assert (found.limit, found.workers_to_try) == ("loader", to_try)
    assert f"num_workers={to_try}); loading waits" in found.advice
    assert ("PyTorch's warning" in found.advice) == (to_try > (cores or to_try))


@pytest.mark.parametrize(("workers", "to_try"), [(0, 2), (1, 2), (2, None), (8, None)])
def test_a_loader_that_computes_gets_no_more_workers_than_cores(workers, to_try):
    facts = LoaderFacts(workers=workers, cores=2, waits=False)
    found = judge(replace(SEEN, fetch_s=9e-3, copies_s=0.0, loader=facts))
    assert (found.limit, found.workers_to_try) == ("loader", to_try)
    assert "prepare the data once" in found.advice
    assert ("num_workers" in found.advice) == (to_try is not None)


# What a reader asks who has followed the first advice, or a loop in that state from the start.
@pytest.mark.parametrize(
    ("facts", "words", "to_try"),
    [
        # whole batches of a TensorDataset: a worker makes them 3 to 6 times slower, also where it
        # sleeps because the loop is busy with taking them in
        ({"in_tensors": True, "own_s": 9e-3}, "torch.tensor(list(sampler)).split", None),
        ({"in_tensors": True, "workers": 2, "waits": True}, "Workers would only cost", None),
        # a batch that takes 1 ms to make; a worker sends 20 kB in 0.8 and the loop gets it in 0.4
        ({"own_s": 0.4e-3}, "take a larger batch", None),
        ({"own_s": 1e-3}, "make the samples cheaper", None),
        ({"own_s": 1e-3, "batch": 4}, "take a larger batch", None),
        ({"own_s": 1e-3, "is_dataloader": False, "iterable": True}, "samples cheaper", None),
        ({"own_s": 1e-3, "waits": True}, "num_workers=8", 8),
        ({"own_s": 5e-3}, "num_workers=2", 2),
        # 6.3 MB, which a worker needs 5.4 ms to send and the loop 0.9 ms to get
        ({"own_s": 5e-3, "batch_bytes": 6_300_000}, "make the samples cheaper", None),
        ({"workers": 2, "receives": True, "waits": True}, "num_workers=0, and ask again", None),
        # a trace says that there are workers, and not how many; 9 ms for a batch, 1 for the rest
        ({"workers": 1, "cores": None}, "about 10 times as many workers", None),
        ({"iterable": True}, "each sample comes 2 times", 2),
        ({"iterable": True, "is_dataloader": False}, "get_worker_info", 2),
    ],
)
@pytest.mark.parametrize("kind", ["cpu", "cuda"])
def test_no_advice_contradicts_the_one_that_led_to_it(facts, words, to_try, kind):
    facts = {"cores": 2, "waits": False, **facts}
    seen = replace(SEEN, kind=kind, fetch_s=9e-3, copies_s=0.0, fetches=1.4)
    found = judge(replace(seen, loader=LoaderFacts(**facts)))
    assert "A step fetches" not in found.advice
    assert (found.limit, found.workers_to_try) == ("loader", to_try) and words in found.advice
    assert ("get_worker_info" in found.advice) == (to_try == 2 and "iterable" in facts)
    if to_try is None:
        more = re.search(r"num_workers=[1-9]", found.advice)
        assert not more and ("on the device" in found.advice) <= (kind == "cuda")


@pytest.mark.parametrize(("fetch_s", "to_try"), [(1.1e-3, None), (1.3e-3, 8)])
def test_a_wait_that_is_shorter_than_sending_a_batch_gets_no_workers(fetch_s, to_try):
    facts = LoaderFacts(cores=2, waits=True, own_s=1e-6)
    found = judge(LoopRecord("cpu", "cpu", 1.01 * fetch_s, fetch_s, loader=facts))
    assert (found.limit, found.workers_to_try) == ("loader", to_try)
    # of workers that a trace shows and does not count, it is not known what a batch takes them
    facts = LoaderFacts(cores=None, workers=1)
    found = judge(LoopRecord("cpu", "cpu", 1.01 * fetch_s, fetch_s, loader=facts))
    assert "times as many workers" in found.advice


@pytest.mark.parametrize(("cores", "enough"), [(8, True), (3, True), (2, False)])
def test_workers_are_called_enough_where_there_are_cores_for_them(cores, enough):
    # 7 ms for a batch, 3 ms for the rest: three workers
    found = judge(replace(SEEN, **LOADER, loader=LoaderFacts(cores=cores, waits=False)))
    assert found.workers_to_try == min(3, cores)
    assert found.advice.endswith("which should be about enough.") == enough


def test_a_trace_from_elsewhere_does_not_say_whether_loading_computes():
    found = judge(replace(SEEN, **LOADER, loader=LoaderFacts(cores=None, waits=False)))
    assert found.workers_to_try == 3 and "take one for each core" in found.advice


def loader_of(seen_s=9e-3, **facts):
    """Return a loop whose loader is the bottleneck."""
    return replace(SEEN, fetch_s=seen_s, copies_s=0.0, loader=LoaderFacts(cores=2, **facts))


@pytest.mark.parametrize("waits", [True, False, None])
def test_advice_has_no_condition_that_the_reader_has_to_find_out(waits):
    for workers in (0, 2, 64):
        facts = LoaderFacts(workers=workers, cores=2, waits=waits)
        advice = judge(replace(SEEN, fetch_s=9e-3, copies_s=0.0, loader=facts)).advice
        assert not re.search(r"\bif\b", advice)


def test_workers_that_start_anew_for_each_epoch_are_kept_and_not_added_to():
    # measured in mmpretrain's case: 4 workers 1.36 s per epoch, 8 workers 1.78, 4 that stay 0.06
    found = judge(loader_of(workers=4, waits=True, restart_s=4.6e-3))  # more than half of 9 ms
    assert "persistent_workers=True" in found.advice and "num_workers" not in found.advice
    assert "46% of the time" in found.advice  # 4.6 of 10 ms
    assert found.workers_to_try is None
    assert "num_workers=8" in judge(loader_of(workers=4, waits=True, restart_s=4.4e-3)).advice


@pytest.mark.parametrize(
    ("workers", "batch", "whole"),
    # 9 ms for 256 samples are 35 microseconds each; for 64 they are 140
    [(0, 256, True), (0, 64, False), (1, 256, True), (4, 256, False), (0, 0, False)],
)
def test_samples_that_cost_microseconds_get_whole_batches_and_no_workers(workers, batch, whole):
    found = judge(loader_of(workers=workers, batch=batch, sampler="sampler"))
    assert ("make whole batches" in found.advice) == whole
    assert ("num_workers=" in found.advice or "prepare the data" in found.advice) != whole
    if whole:
        assert f"BatchSampler(sampler, {batch}, drop_last=False)" in found.advice
        assert found.workers_to_try is None


@pytest.mark.parametrize(
    ("own_s", "waits", "whole"), [(2e-3, False, True), (2e-3, True, False), (4e-3, False, False)]
)
def test_what_a_sample_costs_is_the_time_on_a_core_whatever_else_runs(own_s, waits, whole):
    # of 9 ms for 64 samples the loop's thread worked for 31 or 62 microseconds each
    found = judge(loader_of(batch=64, sampler="sampler", own_s=own_s, waits=waits))
    assert ("make whole batches" in found.advice) == whole


@pytest.mark.parametrize(("arithmetic_s", "clear"), [(4.7e-3, False), (4.85e-3, True)])
def test_a_lead_of_less_than_a_tenth_of_the_step_is_no_verdict_and_no_advice(arithmetic_s, clear):
    # of 10 ms, 1.5 ms are loader and copies, and the launches are what is left
    found = judge(replace(SEEN, arithmetic_s=arithmetic_s))
    assert (found.limit is None) != clear and "launches" in repr(found)
    assert bool(found.advice) == clear and ("Try first" in repr(found)) == clear


@pytest.mark.parametrize(("queued_s", "clear"), [(3.7e-3, True), (3.8e-3, False)])
def test_launches_are_no_verdict_if_for_half_of_them_the_next_work_was_there(queued_s, clear):
    found = judge(replace(SEEN, queued_s=queued_s))  # launches take 7.5 ms
    assert (found.limit == "launches") == clear == ("no launch" not in found.doubt)


def test_batches_that_no_dataloader_makes_are_to_come_from_one():
    assert (
        "in a DataLoader of torch, with num_workers=2"
        in judge(loader_of(waits=False, is_dataloader=False)).advice
    )


def test_a_device_that_the_profiler_does_not_see_is_no_verdict_unless_the_loader_is_slow():
    unseen = replace(
        SEEN, device="mps:0", kind="mps", arithmetic_s=0.0, copies_s=0.0, visible=False
    )
    assert judge(unseen).limit is None and "saw no work on mps:0" in judge(unseen).doubt
    assert judge(replace(unseen, fetch_s=9e-3)).limit == "loader"


RECORDED = tomllib.loads(Path(__file__).with_name("recorded.toml").read_text("utf-8"))


def recorded(name):
    figures = RECORDED[name]
    seconds = {key: value / 1e3 for key, value in figures.items() if key.endswith("_s")}
    return judge(LoopRecord("a GPU", "cuda", **{**figures, **seconds}))


# Scripts apart read the device's and the loader's milliseconds from the whole traces: of the V100
# without a worker the loader 32.4, copies 1.65, work 98.1; of the A100 of two exchange 10.4, work
# 39.3; and so on. What the verdict is, whoever looks at the timelines can tell.
@pytest.mark.parametrize(
    ("name", "limit", "advice"),
    [
        ("V100, ResNet-50, no worker", "arithmetic", "against the loader (22% of the step)"),
        ("V100, ResNet-50, four workers", "arithmetic", "against the launches (17% of the step)"),
        ("V100, ResNet-50, data on the GPU", "arithmetic", "16 bits"),
        ("A100, one of two, ResNet-50", "launches", "a larger batch"),
        (
            "A100, one of eight, a recommender",
            "memory",
            "against the other ranks (19% of the step)",
        ),
        ("A100, one of sixteen, a recommender", None, ""),
        ("MI250, one layer", "launches", "a larger batch"),
    ],
)
def test_the_verdicts_on_gpus_that_others_recorded(name, limit, advice):
    found = recorded(name)
    assert found.limit == limit and found.advice.startswith(advice)


TENSORS = TensorDataset(torch.arange(12.0).reshape(12, 1), torch.arange(12))


@pytest.mark.parametrize("dataset", [TENSORS, Subset(Subset(TENSORS, range(10)), range(8))])
def test_for_tensors_in_memory_the_advice_is_whole_batches_and_it_can_be_run(dataset):
    facts = replace(facts_of(DataLoader(dataset, 4, shuffle=True)), waits=False)
    found = judge(replace(SEEN, fetch_s=9e-3, copies_s=0.0, loader=facts))
    assert found.limit == "loader" and found.workers_to_try is None
    (line,) = re.findall(r"DataLoader\(.*?\)\)(?=\. )", found.advice)
    names = {"DataLoader": DataLoader, "BatchSampler": BatchSampler, "dataset": dataset}
    whole = eval(line, {**names, "RandomSampler": RandomSampler})

    # and so can what is advised if the loader is the bottleneck after that
    facts = replace(facts_of(whole), waits=False)
    advice = judge(replace(SEEN, fetch_s=9e-3, copies_s=0.0, loader=facts)).advice
    unpack, loop = re.findall(r"(x, y = .*?), and then (.*?\)\))\. ", advice)[0]
    taken: list = []
    names = {"dataset": dataset, "batch_size": 4, "torch": torch, "step": taken.append}
    exec(f"{unpack}\n{loop}", names)
    for batches in (list(whole), taken):
        assert [len(x) for x, _ in batches] == [4] * (len(dataset) // 4)
        assert sorted(torch.cat([y for _, y in batches]).tolist()) == list(range(len(dataset)))


@pytest.mark.parametrize(
    ("in_notebook", "words"),
    [(True, "in a .py file that you import, not in a cell"), (False, '__name__ == "__main__"')],
)
def test_advice_to_start_workers_says_what_they_need_where_they_are_spawned(in_notebook, words):
    slow = loader_of(waits=True, spawned=True, in_notebook=in_notebook)
    advice = judge(slow).advice
    assert words in advice and "persistent_workers=True" in advice
    forked = judge(loader_of(waits=True, in_notebook=in_notebook)).advice
    assert words not in forked and "persistent_workers" not in forked
    kept = judge(loader_of(waits=True, spawned=True, persistent=True, in_notebook=in_notebook))
    assert words in kept.advice and "persistent_workers" not in kept.advice


@pytest.mark.parametrize("lost_s", [0.0, 0.5e-3])
def test_a_tie_is_no_fault_of_other_programs_that_took_less_than_the_lead(lost_s):
    tie = replace(SEEN, kind="cpu", device="cpu", fetch_s=0.0, copies_s=0.0, arithmetic_s=4.6e-3)
    found = judge(replace(tie, lost_s=lost_s))
    assert found.doubt == "The launches and the arithmetic take about equally long."


@pytest.mark.parametrize(
    ("changes", "limit"),
    [
        # launches 7.5 ms, the next part 1 ms: without the others' 5 ms they still lead
        ({"lost_s": 5e-3}, "launches"),
        ({"lost_s": 7e-3}, None),
        ({"lost_s": 7e-3, "python_s": 7e-3}, None),
        # what others took is no arithmetic, and no loader
        ({"lost_s": 7e-3, "arithmetic_s": 7e-3}, "arithmetic"),
        ({"lost_s": 7e-3, "fetch_s": 9e-3}, "loader"),
        # met on a busy machine: what others took is 2 ms short of the lead of 243.5 ms
        ({"step_s": 0.326, "lost_s": 0.2413, "arithmetic_s": 0.0363, "copies_s": 0.0099}, None),
    ],
)
def test_what_other_programs_took_makes_the_verdict_doubtful_if_it_could_change_it(changes, limit):
    found = judge(replace(SEEN, kind="cpu", device="cpu", **changes))
    assert found.limit == limit
    assert ("Other programs had the core" in repr(found)) == (limit is None)
