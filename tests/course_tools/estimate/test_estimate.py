"""What a user asks and gets: rows, intervals, money, files, errors, the command line, and a package
that is called.
"""

import json
import re
from dataclasses import replace
from decimal import Decimal

import numpy as np
import pytest
import torch
from torch import nn

from course_tools.estimate import Chip, Job, Machine, estimate
from course_tools.estimate.advice import advice, too_close_to_call
from course_tools.estimate.answer import Answer
from course_tools.estimate.chips import all_chips, all_links, find_chip
from course_tools.estimate.counting.count_work import count_work
from course_tools.estimate.memory.estimate_memory import estimate_memory
from course_tools.estimate.prices import Price
from course_tools.estimate.time.error_factor import ErrorFactor
from course_tools.estimate.time.parallel import exchange_s, scaling
from course_tools.estimate.time.step_time import StepTime, cloud_host, fitted, step_time
from course_tools.estimate.words import span
from course_utils.timing import Timing

X = torch.empty(1, 16)


def one_line(text):
    return " ".join(text.split())


def plain(found):
    """Return what is shown, without the breaks of its lines."""
    return one_line(repr(found))


@pytest.fixture(scope="module")
def model():
    return nn.Sequential(nn.Linear(16, 512), nn.ReLU(), nn.Linear(512, 10))


@pytest.fixture(scope="module")
def answer(model):
    return estimate(
        model, X, batch=64, samples=10**6, devices=["T4", "a100", "v5e"], prices={"t4": 0.5}
    )


def test_each_device_has_a_row_whose_figures_hang_together(answer):
    assert [row.device for row in answer.rows] == ["T4", "A100 80GB", "TPU v5e"]
    row = answer["T4"]
    assert row.samples_per_s * row.step_s == pytest.approx(64)
    assert row.hours == pytest.approx(10**6 / row.samples_per_s / 3600)
    assert row.flops == pytest.approx(answer.demand.work.flops * 10**6 / 64)  # of the whole job
    assert row.hours_interval[0] < row.hours < row.hours_interval[1]
    assert row.cost == pytest.approx(row.hours * 0.5)
    assert row.cost_interval[1] == pytest.approx(row.cost * row.evidence.upper)
    assert [row.precision for row in answer.rows] == ["fp16", "bf16", "bf16"]
    tpu = answer["v5e"]  # nobody compared it, nor is its price known
    assert tpu.factor > 2.5 and not tpu.checked and tpu.price is None is tpu.cost
    assert answer["a100"] is answer["A100 80GB"]
    with pytest.raises(KeyError, match="not among the devices"):
        answer["H100"]


def test_a_job_and_machines_say_what_the_keywords_say(model):
    grouped = estimate(
        model,
        X,
        Job(batch=64, samples=10**6),
        devices=["2 x T4", Machine("A100", 8, link="Ethernet 10G")],
        prices={"A100": 1.5},
    )
    assert [row.name for row in grouped.rows] == ["2 x T4", "8 x A100 80GB"]
    asked = {"batch": 64, "samples": 10**6}
    two = estimate(model, X, devices=["T4"], count=2, **asked).rows[0]
    eight = estimate(model, X, devices=["A100"], count=8, link="Ethernet 10G", **asked).rows[0]
    assert grouped["2 x T4"].step_s == two.step_s and grouped["A100"].step_s == eight.step_s
    assert grouped["A100"].cost == pytest.approx(eight.hours * 8 * 1.5)
    assert grouped["A100"].step_s > estimate(model, X, devices=["8 x A100"]).rows[0].step_s
    assert "Link of 8 x A100 80GB: Ethernet 10G, 1.25 GB/s" in one_line(grouped.details())


def test_whole_numbers_and_prices_of_other_libraries_are_numbers(model):
    asked = {"batch": np.int64(8), "epochs": np.int32(2), "prices": {"T4": np.float32(0.5)}}
    answer = estimate(model, X, devices=["T4"], **asked)
    found = answer.rows[0]
    assert found.batch == 8 and found.price.per_hour == 0.5
    assert json.loads(answer.to_json())["question"]["epochs"] == 2
    assert estimate(model, X, devices=["T4"], prices={"T4": Decimal("0.25")}).rows[0].cost > 0


def test_shards_make_a_training_fit_that_does_not_fit_alone():
    with torch.device("meta"):
        wide = nn.Sequential(*(nn.Linear(20_000, 20_000) for _ in range(6)))
    x = torch.empty(1, 20_000, device="meta")
    alone, shared = (
        estimate(wide, x, devices=["8 x A100 40GB"], shards=shards).rows[0] for shards in (1, 8)
    )
    assert shared.fits and not alone.fits
    # parameters in both passes and gradients once, where DDP's ring goes round twice
    one = estimate(wide, x, devices=["A100 40GB"]).rows[0].step_s
    slow = [
        estimate(wide, x, devices=["8 x A100 40GB"], link="Ethernet 10G", shards=shards).rows[0]
        for shards in (1, 8)
    ]
    assert (slow[1].step_s - one) / (slow[0].step_s - one) == pytest.approx(1.5, rel=0.05)
    with pytest.raises(ValueError, match="Pass count=8"):
        estimate(wide, x, devices=["A100 40GB"], shards=8)


def test_several_devices_need_memory_for_the_buckets_of_ddp(model):
    one, eight = (estimate(model, X, devices=["A100"], count=n).rows[0] for n in (1, 8))
    parameters = sum(p.numel() for p in model.parameters())
    assert eight.needed_bytes >= one.needed_bytes + 4 * parameters
    assert eight.batch == 8 * one.batch


@pytest.mark.parametrize("training", [True, False])
def test_one_run_of_the_model_finds_what_counting_and_memory_find_alone(model, training):
    both = estimate(model, X, batch=64, training=training)
    asked = {"batch": 64, "precision": "fp16", "training": training}
    assert both.demand.work == count_work(model, X, **asked)
    assert both.demand.memory == estimate_memory(model, X, **asked)


@pytest.mark.parametrize(
    ("words", "precision", "said"),
    [(1001, "amp", "100% of the operations"), (1002, "amp", ""), (1001, "tf32", "")],
)
def test_sizes_that_tensor_cores_do_not_like_are_named(words, precision, said):
    x = torch.empty(1, 64)
    found = estimate(nn.Linear(64, words), x, batch=8, devices=["A100"], precision=precision)
    assert ("round such sizes up" in one_line(found.details())) == bool(said)
    assert said in one_line(found.details())


def test_details_say_which_device_a_reason_and_a_host_belong_to():
    net = nn.Sequential(nn.Conv2d(3, 64, 3), nn.ReLU())
    asked = {"batch": 4096, "devices": ["A100", "H100"]}
    text = estimate(net, torch.empty(1, 3, 64, 64), **asked).details()
    assert re.search(r"^H100 SXM: fewer than two sources measured this card", text, re.M)
    assert "Host of A100 80GB: a typical one of clouds, fitted on" in text
    assert "Host of H100 SXM: a typical one of clouds, assumed" in text


def test_an_epoch_shorter_than_one_step_takes_a_whole_step():
    for samples, epochs, steps in ((1, 1, 1), (64, 1, 1), (96, 1, 1.5), (10, 5, 5), (96, 2, 3)):
        job = {"batch": 64, "samples": samples, "epochs": epochs}
        row = estimate(nn.Linear(16, 4), X, **job, devices=["T4"]).rows[0]
        assert row.hours == pytest.approx(steps * row.step_s / 3600)


def test_a_thousand_samples_have_a_price():
    found = estimate(nn.Linear(8, 8), torch.empty(1, 8), samples=2000, devices=[Machine("T4", 1)])
    row = found.rows[0]
    each = row.long_cells()[4].removeprefix("$")
    assert float(each) == pytest.approx(row.cost / 2, rel=0.05)
    assert f"${each}" in one_line(found.details())
    cheap = replace(row, price=replace(row.price, per_hour=1e-3))
    assert cheap.long_cells()[4] == "< $0.0001"
    dear = replace(row, price=replace(row.price, per_hour=10_000.0))
    assert dear.long_cells()[4] == f"${dear.cost / 2:.2f}"
    for usd, text in ((0.056, "$0.06"), (0.0096, "$0.0096")):  # in cents where that is two digits
        priced = replace(row, step_s=3.6 * row.batch, price=replace(row.price, per_hour=usd))
        assert priced.long_cells()[4] == text
    home = replace(row, price=replace(row.price, kind="in homes"))  # unlike the rows beside it
    assert home.long_cells()[4] == f"${each}, in homes" and home.cells()[2].endswith(", in homes")
    two = replace(row, machine=Machine("T4", 2), price=replace(row.price, per_hour=10_000.0))
    assert two.long_cells()[4] == f"${2 * dear.cost / 2:.2f}"


def test_a_job_has_the_same_operations_on_one_device_as_on_two(model):
    one, two = estimate(model, X, batch=8, samples=800, epochs=3, devices=["T4", "2 x T4"]).rows
    assert one.flops == two.flops == pytest.approx(300 * count_work(model, X, batch=8).flops)


def test_a_measured_job_may_take_as_long_as_the_slow_end_of_the_median_says(model):
    timing = Timing("cpu", 1, 0.5, tuple(1 + 0.01 * each for each in range(21)), 1)
    row = estimate(model, X, devices=[], this_machine=timing, samples=100).rows[0]
    assert row.step_s == pytest.approx(1.1) and row.hours_interval[1] > row.hours
    assert row.step_interval_s[1] == pytest.approx(timing.interval_s[1])


def test_a_card_of_a_family_that_was_compared_is_near_and_another_is_not():
    image = nn.Conv2d(3, 64, 3), torch.empty(1, 3, 224, 224)
    found = estimate(*image, batch=4096, devices=["A100", "A100 40GB", "H100"])
    known, near, far = found.rows
    assert known.checked and near.checked and not far.checked
    assert known.factor == pytest.approx(near.factor, rel=0.02) and known.factor < far.factor


def test_the_layout_is_seen_and_channels_last_trains_faster_in_16_bits():
    net, x = nn.Conv2d(64, 64, 3), torch.empty(1, 64, 56, 56)
    asked = {"batch": 256, "devices": ["V100"], "precision": "fp16"}
    first = estimate(net, x, **asked)
    last = estimate(net.to(memory_format=torch.channels_last), x, **asked)
    assert last.rows[0].hours < first.rows[0].hours
    assert "channels last" in plain(last) and "channels first" in plain(first)
    told = estimate(nn.Conv2d(64, 64, 3), x, channels_last=True, **asked)
    assert told.rows[0].hours == last.rows[0].hours


def test_pytorchs_own_precision_has_convolutions_in_tf32_and_products_in_fp32():
    conv, image = nn.Conv2d(64, 64, 3), torch.empty(1, 64, 56, 56)
    product, row = nn.Linear(4096, 4096), torch.empty(1, 4096)

    def seconds(net, x, card, precision):
        asked = {"batch": 1024, "precision": precision, "training": False}
        return estimate(net, x, devices=[card], **asked).rows[0].step_s

    assert seconds(conv, image, "A100", "default") == seconds(conv, image, "A100", "tf32")
    assert seconds(product, row, "A100", "default") == seconds(product, row, "A100", "fp32")
    for net, x in ((conv, image), (product, row)):  # which has no tf32
        assert seconds(net, x, "V100", "default") == seconds(net, x, "V100", "fp32")


def test_gradients_that_the_host_copies_do_not_travel_during_the_backward_pass():
    # P. Patarasuk and X. Yuan (2009): each of n sends 2 (n - 1) / n times all gradients
    work = count_work(nn.Linear(4096, 4096), torch.empty(1, 4096), batch=64, precision="bf16")
    for name, hidden in (("PCIe through the host", 0.0), ("PCIe 4.0 x16", 2 / 3)):
        link = next(one for one in all_links() if one.name == name)
        found = scaling(work, "RTX 4090", link=name, counts=(1, 2))
        one_s, sent = found.steps_s[0], exchange_s(work.parameters, link, 2)
        assert sent > one_s  # so that it counts
        two_s = 1.02 * one_s + sent - hidden * one_s
        assert found.steps_s[1] == pytest.approx(two_s, rel=1e-3)


class Graph(nn.Module):
    """A layer that adds up neighbours, as those of graph networks do."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(64, 64)

    def forward(self, x, edges):
        h = self.layer(x)
        return h.index_add(0, edges[1], h[edges[0]])


def test_a_sample_of_a_graph_network_is_a_graph_and_a_batch_is_one_large_graph():
    nodes, edges = torch.empty(1000, 64), torch.zeros(2, 5000, dtype=torch.int64)
    one = estimate(Graph(), (nodes, edges), devices=["T4"])
    eight = estimate(Graph(), (nodes, edges), batch=8, devices=["T4"])
    assert (one.demand.work.batch, eight.demand.work.batch) == (1, 8)
    joined = nodes.repeat(8, 1), edges.repeat(1, 8)
    assert eight.demand.work.flops == estimate(Graph(), joined, devices=["T4"]).demand.work.flops
    assert eight.demand.work.flops == 8 * one.demand.work.flops
    assert "a graph of 1,000 nodes and 5,000 edges" in plain(one).replace("whole ", "")


class Named(nn.Module):
    """A network whose forward pass names devices, as those of people with a GPU do."""

    def __init__(self, name):
        super().__init__()
        self.name, self.layer = name, nn.Linear(16, 4)

    def forward(self, x):
        noise = torch.randn(4, device=self.name)
        moved = {
            "cuda": x.cuda(),
            "cuda:0": x.to(device="cuda:0"),
            "cpu": x.cpu().to("cpu", torch.float32),
        }
        return self.layer(moved.get(self.name, x.to(self.name))) + (
            noise if self.name != "cpu" else 0
        )


@pytest.mark.parametrize("name", ["cuda", "cuda:0", "mps", "cpu"])
def test_a_model_that_names_a_device_in_its_forward_pass_is_counted(name):
    assert count_work(Named(name), X).flops == count_work(nn.Linear(16, 4), X).flops


@pytest.mark.parametrize(
    "figures",
    [
        (-100, 800, 16),
        ("100", 800, 16),
        (100, 0, 16),
        (100, 800, float("nan")),
        ({}, 800, 16),
        ({"fp8": 100}, 800, 16),
        ({"fp16": True}, 800, 16),
    ],
)
def test_a_chip_with_a_figure_that_is_none_is_refused(figures):
    with pytest.raises(ValueError, match=r"of the Lab card .* but got"):
        Chip("Lab card", *figures)


def test_a_device_that_is_named_twice_is_answered_once(model):
    assert len(estimate(model, X, devices=["T4", "t4", Machine("T4")]).rows) == 1


def test_the_16_bits_of_a_chip_are_bf16_where_it_has_them():
    assert [find_chip(name).at("amp") for name in ("A100", "T4")] == ["bf16", "fp16"]


def test_a_chip_without_16_bits_computes_amp_in_what_it_has(model):
    row = estimate(model, X, devices=[Chip("Mine", {"fp32": 10}, 300, 8)]).rows[0]
    assert row.precision == "fp32"


@pytest.mark.parametrize("precision", ["bf16", "tf32"])
def test_where_no_chip_is_named_those_without_the_precision_are_left_out(model, precision):
    found = estimate(model, X, precision=precision)
    names = [row.device for row in found.rows]
    assert "T4" not in names and "A100 80GB" in names and "RTX 5090" in names
    assert f"the T4, which has no {precision}, takes no part" in plain(found)
    assert "T4" in [row.device for row in estimate(model, X).rows]


def test_examples_in_dollars_do_not_stand_beside_prices_in_another_currency(model):
    found = estimate(model, X, devices=["T4", "A100"], prices={"T4": 100}, currency="JPY")
    assert found["T4"].price.currency == "JPY" and found["A100"].price is None
    assert "$" not in plain(found) + one_line(found.details())


@pytest.mark.parametrize(("optimizer", "moved"), [("sgd", 12), ("momentum", 20), ("adamw", 28)])
def test_the_update_moves_what_the_optimizer_reads_and_writes(optimizer, moved):
    net, asked = nn.Linear(4096, 4096, bias=False), {"devices": ["T4"], "loss": torch.sum}
    found = estimate(net, torch.empty(1, 4096), optimizer=optimizer, **asked)
    adam = estimate(net, torch.empty(1, 4096), **asked)
    assert found.demand.work.ops[-1].bytes_moved == moved * 4096**2
    difference = adam.demand.work.bytes_moved - found.demand.work.bytes_moved
    assert difference == (28 - moved) * 4096**2
    assert (found.rows[0].step_s < adam.rows[0].step_s) == (moved < 28)
    assert f"estimated with {optimizer}; with Adam, " in one_line(found.details())
    assert "estimated with Adam; " in one_line(adam.details()) and "Assumed" not in plain(adam)


def test_an_optimizer_whose_update_is_not_known_is_counted_as_adam_and_the_result_says_so(model):
    found, adam = (estimate(model, X, optimizer=one) for one in (torch.optim.RMSprop, "adam"))
    assert "Assumed: the update of RMSprop takes as long as Adam's." in plain(found)
    assert found.demand.work.ops[-1].bytes_moved == adam.demand.work.ops[-1].bytes_moved


def test_a_host_that_launches_faster_prepares_a_step_faster_by_the_same_factor():
    old, new = cloud_host(find_chip("T4")), cloud_host(find_chip("H100"))
    assert new.launch_s < old.launch_s
    assert new.step_s / new.launch_s == pytest.approx(old.step_s / old.launch_s)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        ((25, 25), "25 seconds"),
        ((20 * 3600, 50 * 3600), "20 to 50 hours"),
        ((22 * 3600, 55 * 3600), "22 to 55 hours"),
        ((144, 216), "2.4 to 3.6 minutes"),
        ((60 * 3600, 90 * 3600), "2.5 to 3.8 days"),
        ((72 * 60, 182 * 60), "1.2 to 3 hours"),
        ((41, 344), "41 seconds to 5.7 minutes"),
        ((40 * 3600, 100 * 3600), "40 hours to 4.2 days"),
        ((0.00042, 0.00094), "420 to 940 microseconds"),
        ((30 * 3600, 60 * 3600), "30 to 60 hours"),
        ((40 * 3600, 95 * 3600), "40 to 95 hours"),
        ((9.94, 9.96), "9.9 to 10 seconds"),
        ((3600, 3600), "1 hour"),
    ],
)
def test_times_are_in_the_units_that_a_person_uses(seconds, words):
    assert span((seconds[0] / 3600, seconds[1] / 3600)) == words


@pytest.mark.parametrize(
    ("low", "high", "currency", "words"),
    [
        (0.001, 0.002, "$", "less than $0.01"),
        (0.001, 0.02, "EUR", "up to 0.02 EUR"),
        (9.999, 41.4, "$", "$10 to $41"),
        (0.0049, 0.0051, "$", "up to $0.01"),
        (0.0051, 9.9, "$", "$0.01 to $9.90"),
    ],
)
def test_amounts_of_money_are_never_written_as_nothing(low, high, currency, words):
    middle, factor = (low * high) ** 0.5, (high / low) ** 0.5
    row = row_of("T4", 1, middle, factor=factor, currency=currency)
    assert row.cost_text() == words


def row_of(device, hours, price, fits=True, factor=1.5, currency="$", kind="", checked=True):
    own = device == "this machine"
    return Answer(
        machine=None if own else Machine(Chip(device, 100, 900, 16)),
        precision="bf16",
        step_s=1.0,
        batch=1,
        samples=hours * 3600,
        epochs=1,
        price=None if price is None else Price(price, "-", currency, kind and "A", kind),
        evidence=ErrorFactor(1.0 if own else factor, checked, ()),
        parts=None if own else StepTime(0.0, 1.0, 0.0),
        fits=None if own else fits,
    )


ANSWERS = [
    ([("T4", 100, 0.3), ("A100", 20, 2.0)], None, r"Rent the T4: .* days, \$20 to .*\."),
    # first the one that is in time, then the one that costs less
    (
        [("4090", 40, 0.3), ("A100", 20, 2.0), ("H100", 10, 9.0)],
        48,
        r"Rent the A100: 13 to 30 hours, \$27 to \$60 \(your price\)\. "
        r"The 4090 costs less \(\$8.00 to \$18\) but may miss your 48 hours\.",
    ),
    ([("A100", 20, 2.0), ("4090", 90, 0.3)], 48, r"Rent the A100: [^.]*\."),
    # one that has no price is not denied
    (
        [("4090", 40, 0.3), ("5090", 20, None)],
        48,
        "The 5090 meets your 48 hours even at the slow end: 13 to 30 hours; no price is known "
        r"here\. The 4090 may miss them: 27 to 60 hours, \$8.00 to \$18 \(your price\)\.",
    ),
    (
        [("L4", 30, None), ("5090", 20, None)],
        48,
        "The 5090 meets your 48 hours even at the slow end.*no price is known here.",
    ),
    # one that is certain to miss is not recommended
    (
        [("A100", 20, 2.0), ("H100", 10, 9.0), ("T4", 100, 0.1)],
        12,
        r"None surely meets your 12 hours\. The H100 may: 6.7 to 15 hours, .*",
    ),
    (
        [("T4", 100, 0.3), ("A100", 20, 2.0)],
        5,
        "None of them meets your 5 hours: the fastest is the A100, 13 to 30 hours, .*",
    ),
    ([("this machine", 1512, 0), ("A100", 20, 2.0)], 48, r"Rent the A100: [^.]*\."),
    (
        [("this machine", 1512, 0), ("A100", 20, 2.0)],
        None,
        r"Stay on your own machine: 63 days, free\. The A100 would take 13 to 30 hours, .*",
    ),
    # a price of nothing is the least, whatever little the others cost
    ([("T4", 100, 0), ("A100", 20, 0.01)], None, r"Rent the T4: 2\.8 to 6\.2 days, free\."),
    (
        [("this machine", 40, 0), ("A100", 4, 0), ("H100", 2, 0.1)],
        None,
        r"Stay on your own machine: 40 hours, free\. The A100 would take .* hours, free\.",
    ),
    ([("this machine", 0.1, 0), ("A100", 0.01, 2.0)], 48, r"Stay on your own machine: 6 min.*"),
    ([("H100", 0.1, 9.0)], 0.1, r"None surely meets your 0\.1 hours\. The H100 may: 4 to 9 min.*"),
    ([("H100", 4, 9.0)], 3, r"None surely meets your 3 hours\. The H100 may: 2.7 to 6 hours, .*"),
    ([("T4", 100, None)], None, "The T4 is the fastest: .*no price is known here."),
    ([("T4", 1, 0.1, False)], None, "It fits none.*"),
    ([("H100", 2, 9.0)], 1, "None of them meets your hour: the fastest is the H100, .*"),
    ([("H100", 4, 9.0)], 2, "None of them meets your 2 hours: the fastest is the H100, .*"),
]


HOME, CENTRE = {"kind": "in homes"}, {"kind": "on demand"}
LIKE = [
    # a card in a home is no cheaper offer of a card in a data centre, and alone it is the offer
    (
        [("5090", 20, 0.5, HOME), ("4090", 30, 0.7, CENTRE), ("3090", 9, 0.9, HOME)],
        "Rent the 4090: .* (A, on demand). The 3090 costs less ($5.40 to $12), but in homes (A).",
    ),
    ([("5090", 20, 0.5, HOME), ("3090", 50, 0.5, HOME)], "Rent the 5090: .* (A, in homes)."),
    ([("5090", 20, 0.5, HOME), ("4090", 30, 0.7, {})], "Rent the 5090: .* (A, in homes)."),
    # an unchecked card is passed over for a checked one that costs up to a quarter more, dearest
    (
        [("H100", 10, 1, {"checked": False}), ("4090", 12, 1, {})],
        "Rent the 4090: .* The H100 costs less ($6.67 to $15), but is unchecked.",
    ),
    ([("H100", 10, 1, {"checked": False}), ("4090", 13, 1, {})], "Rent the H100: .*, unchecked."),
    (
        [("H100", 10, 1, {"checked": False, "factor": 2}), ("4090", 16, 1, {})],
        "Rent the 4090: .* The H100 costs less ($5.00 to $20), but is unchecked.",
    ),
    # nothing is said of one that is late, or costs more at the dear end
    ([("5090", 90, 0.1, HOME), ("4090", 30, 0.7, CENTRE)], "Rent the 4090: [^.]*."),
    (
        [("H100", 9, 1, {"checked": False, "factor": 3}), ("4090", 16, 1, {})],
        "Rent the 4090: [^.]*.",
    ),
]


@pytest.mark.parametrize(("rows", "words"), LIKE)
def test_only_like_offers_are_compared_and_a_checked_card_is_preferred(rows, words):
    said = advice([row_of(*row, **more) for *row, more in rows], 60)
    assert re.fullmatch(re.sub(r"[($)]", r"\\\g<0>", words), said), said


@pytest.mark.parametrize(("rows", "deadline", "words"), ANSWERS)
def test_the_answer_names_what_is_in_time_then_what_costs_least(rows, deadline, words):
    assert re.fullmatch(words, advice([row_of(*row) for row in rows], deadline))


def test_devices_without_a_price_are_named_only_where_others_have_one(model):
    for prices, said in ((None, False), ({"T4": 1}, True), ({"T4": 1, "A100": 2}, False)):
        notes = estimate(model, X, devices=["T4", "A100"], prices=prices, currency="EUR").notes()
        assert any("by cost: A100 80GB (no price)." in note for note in notes) == said


def test_two_currencies_are_not_compared():
    rows = [row_of("T4", 20, 9.0, currency="EUR"), row_of("A100", 20, 1.0)]
    assert "Rent the T4" in advice(rows, 48)  # the examples are in dollars
    free = row_of("this machine", 30, 0)  # what is free is so in every currency
    assert "Stay on your own machine" in advice([*rows, free], 48)


PAIR = {"a": 1, "b": 1.2}


def test_devices_whose_intervals_overlap_are_not_too_close_to_call():
    names = {"A100": 20, "H100": 12, "4090": 40, "T4": 200, "5090": 24, "one": 2000}
    (said,) = too_close_to_call([row_of(name, hours, None) for name, hours in names.items()])
    assert "their intervals overlap: H100, A100 and 5090; A100, 5090 and 4090." in said
    assert too_close_to_call([row_of("A100", 20, None), row_of("T4", 200, None)]) == []
    pairs = {f"{name}{size}": 10**size * more for size in range(4) for name, more in PAIR.items()}
    (said,) = too_close_to_call([row_of(name, hours, None) for name, hours in pairs.items()])
    assert said.endswith("overlap: a0 and b0; a1 and b1; and 2 more groups.")


def test_a_step_at_the_brim_just_fits_and_one_that_was_measured_fits():
    row = row_of("T4", 1, 1.0)
    shares = [replace(row, needed_bytes=share * row.capacity_bytes) for share in (0.91, 0.89)]
    assert [one.cells()[3] for one in shares] == ["just", "yes"]
    assert row_of("this machine", 1, 0).cells()[3] == "yes"


def test_the_result_says_what_is_not_counted(model):
    assert "The loss is not counted" in plain(estimate(model, X, devices=["T4"]))
    for batch, said in ((None, True), (1, False)):  # it was asked for, or the example has it
        assert ("A step has one sample" in plain(estimate(model, X, batch=batch))) == said
    given = estimate(model, X, devices=["T4"], loss=lambda out: out.mean())
    assert "loss is not" not in plain(given)


def test_a_batch_in_a_list_is_one_argument_and_the_error_says_so():
    with pytest.raises(RuntimeError, match="a list is one") as refused:
        estimate(nn.Bilinear(4, 4, 1), [torch.empty(2, 4), torch.empty(2, 4)])
    assert ".item()" not in str(refused.value)


def test_each_row_says_whether_it_fits():
    wide, x = (
        nn.Sequential(*(nn.Linear(2**14, 2**14, device="meta") for _ in range(6))),
        torch.empty(1, 2**14),
    )
    answer = estimate(
        wide, x, batch=64, devices=["T4", "H100"], prices={"T4": 0.01, "H100": 3}, this_machine=1e6
    )
    assert answer["T4"].fits is False and answer["H100 SXM"].fits
    assert "no: needs 35.2 GB, has 16.1 GB" in plain(answer)
    assert "of 121" in one_line(answer.details())
    assert answer.to_dict()["rows"][0]["fits"] is False
    # What does not fit is not recommended, however cheap it is.
    assert answer.cheapest().device == "this machine"
    assert estimate(wide, x, batch=64, devices=["T4"], prices={"T4": 1}).cheapest() is None


def test_a_deadline_counts_the_far_end_of_the_interval(answer):
    slow = answer["T4"]
    alone = replace(answer, rows=(slow,))
    for hours, found in ((slow.hours, None), (slow.hours_interval[1], slow), (1e-9, None)):
        assert alone.cheapest(deadline_hours=hours) == found


def test_the_result_is_a_table_json_and_safe_html(answer):
    pytest.importorskip("pandas")
    frame = answer.to_frame()
    assert list(frame["device"]) == ["T4", "A100 80GB", "TPU v5e"] and frame["hours"].gt(0).all()
    saved = json.loads(answer.to_json())
    assert saved["counted"]["matrix"]["flops"] == answer.demand.work.flops
    assert "ops" not in saved["counted"]
    assert saved["rows"][0]["hours"] == answer["T4"].hours
    name = "<script>alert(1)</script>"
    hostile = estimate(
        nn.Linear(2, 2),
        torch.empty(1, 2),
        devices=[Chip(name, 100, 900, 16)],
        this_machine=1.0,
        prices={"this machine": 1, name: 2},
    )
    shown = hostile._repr_html_()
    assert "<script" not in shown and "&lt;script&gt;alert(1)" in shown
    assert shown.startswith('<div class="mathjax_ignore')  # two prices are no formula


def test_every_chip_has_a_source_and_plausible_figures():
    chips = all_chips()
    assert len(chips) >= 20
    for chip in chips:
        assert chip.source.startswith("https://") and chip.peak(chip.at("amp")) > 1e12, chip.name
        assert not chip.link or chip.link in {link.name for link in all_links()}


def test_cards_for_games_have_the_rate_of_products_accumulated_in_32_bits():
    # NVIDIA's white papers of Ampere, Ada and Blackwell: twice the rate without tensor cores; the
    # advertised rate, with 16-bit accumulation, is four times as fast.
    cards = [chip for chip in all_chips() if re.fullmatch(r"RTX [345]0\d0", chip.name)]
    assert len(cards) >= 10
    for card in cards:
        assert card.peaks["bf16"] == pytest.approx(2 * card.peaks["fp32"], rel=0.01), card.name


def test_a_share_in_tf32_that_was_not_measured_is_that_of_16_bits():
    shares = {"16 bits": 0.5, "fp32": 0.8}
    for more, share in (({}, 0.5), ({"tf32": 0.7}, 0.7)):
        assert Chip("mine", 100, 900, 16, achieved_share=shares | more).achieved("tf32") == share


def test_no_two_chips_answer_to_one_name():
    for chip in all_chips():
        found = {name: find_chip(name).name for name in (chip.name, *chip.also)}
        assert set(found.values()) == {chip.name}, f"another chip has one of these names: {found}"


def test_a_small_batch_is_limited_by_launches_and_a_large_product_by_arithmetic():
    chip, deep = find_chip("A100"), nn.Sequential(*(nn.Linear(8, 8) for _ in range(200)))
    assert step_time(count_work(deep, torch.empty(1, 8), training=False), chip).limit == "launches"
    wide = count_work(nn.Linear(16_384, 16_384), torch.empty(16_384, 16_384), training=False)
    assert step_time(wide, chip).limit == "arithmetic"
    assert (
        step_time(count_work(nn.ReLU(), torch.empty(2**30), training=False), chip).limit == "memory"
    )


def test_the_ring_moves_each_gradient_twice_and_a_slow_link_costs_speed():
    link = next(link for link in all_links() if link.name == "NVLink 3")
    latency_s = fitted()["numbers"]["round_s"]["value"]
    carried = 0.8 * 300e9  # four fifths of the line rate
    assert exchange_s(10**9, link, 8) == pytest.approx(2 * 7 / 8 * 4e9 / carried + 14 * latency_s)
    work = count_work(nn.Linear(4096, 4096), torch.empty(1, 4096), batch=4096)
    scaled = scaling(work, "A100", counts=(1, 8))
    assert scaled.speedups[0] == 1 and 4 < scaled.speedups[1] < 8
    slow = scaling(work, "A100", link="Ethernet 10G", counts=(1, 8))
    assert slow.speedups[1] < scaled.speedups[1]
    # this chip has no link of its own
    without = scaling(work, "M4 Max", link="Ethernet 10G", counts=(1, 8))
    assert without.speedups[1] > 1


def test_several_cards_are_compiled_and_launched_as_one_is(model):
    def step_s(count, **asked):
        return estimate(model, X, devices=["A100"], count=count, **asked).rows[0].step_s

    def ratio(count, **asked):
        return step_s(count, **asked) / step_s(count)

    assert ratio(2, compiled=True) == pytest.approx(ratio(1, compiled=True), rel=0.02)


def test_a_model_in_16_bits_is_counted_without_casts_and_refuses_32():
    model, x = nn.Linear(16, 16).bfloat16(), X.bfloat16()
    work = estimate(model, x, devices=["T4", "A100"]).demand.work
    assert not [op for op in work.ops if op.name == "_to_copy" and op.elements == 16 * 16]
    with pytest.raises(ValueError, match="'fp32' was asked of a model in"):
        estimate(model, x, devices=["T4"], precision="fp32")


def test_a_model_spread_over_devices_is_the_model_itself(model):
    one, spread = (estimate(net, X, devices=["T4"]) for net in (model, nn.DataParallel(model)))
    assert spread.demand.work == one.demand.work


@pytest.mark.parametrize("seconds", [0.5, np.float32(0.5)], ids=["Python", "NumPy"])
def test_a_model_in_16_bits_can_be_measured_here_alone(seconds):
    model = nn.Linear(16, 8).bfloat16()
    found = estimate(model, X, devices=[], this_machine=seconds, samples=100)
    assert found.rows[0].kind == "measured" and found.rows[0].step_s == 0.5


def test_scaling_wants_a_training_and_numbers_of_devices():
    layer = nn.Linear(4, 4), torch.empty(1, 4)
    with pytest.raises(ValueError, match="training"):
        scaling(count_work(*layer, training=False), "A100")
    with pytest.raises(ValueError, match="positive integers"):
        scaling(count_work(*layer), "A100", counts=(1, 0))


TYPED = {  # what people type, and what torch.cuda.get_device_name() or XLA says of them
    "RTX 4090": ["rtx4090", "4090", "NVIDIA GeForce RTX 4090"],
    "V100 SXM2 16GB": ["v100", "Tesla V100-SXM2-16GB"],
    "A100 80GB": ["a100", "NVIDIA A100-SXM4-80GB"],
    "A100 PCIe 80GB": ["A100 PCIe"],
    "H100 SXM": ["H100 80GB", "NVIDIA H100 80GB HBM3"],
    "MI300X": ["mi300", "AMD Instinct MI300X"],
    "T4": ["Colab", "Colab T4", "Tesla T4", "NVIDIA T4 16GB"],
    "L4": ["NVIDIA L4"],
    "RTX PRO 6000": ["PRO 6000", "NVIDIA RTX PRO 6000 Blackwell Workstation Edition"],
    "RTX PRO 6000 Server": ["G4", "NVIDIA RTX PRO 6000 Blackwell Server Edition"],  # Colab's is G4
    "RTX 4060 Laptop": ["RTX 4060 Laptop GPU"],
    "TPU v5e": ["v5e", "TPU v5 lite"],
    "RTX A5000": ["A5000"],
    "RTX A4000": ["A4000"],
    "Apple M2 Pro": ["M2 Pro", "MacBook Pro M2 Pro"],
    "Apple M4": ["M4"],
    "RTX 5080": ["5080", "GeForce RTX 5080 16GB"],
    "RTX 3060": ["NVIDIA GeForce RTX 3060", "rtx 3060 12gb"],
    "RTX 3060 Laptop": ["NVIDIA GeForce RTX 3060 Laptop GPU", "RTX 3060 Mobile"],
    "RTX 3050 6GB Laptop": ["NVIDIA GeForce RTX 3050 6GB Laptop GPU"],
    "RTX 2000 Ada": ["NVIDIA RTX 2000 Ada Generation"],
    "Quadro RTX 6000": ["NVIDIA Quadro RTX 6000", "RTX 6000"],
    "GTX 1650": ["NVIDIA GeForce GTX 1650"],
}
SAME = "RTX 3090, RTX 2080 Ti, RTX 4070, RTX 5060, RTX 6000 Ada, GH200, B300, RTX 3060 Ti, L40, A30"
SAME += ", RTX 4060 Ti, RTX 4070 Ti, RTX 5070 Ti, RTX 3080 Ti, GTX 1080 Ti, DGX Spark"


def test_cards_are_found_by_what_people_type_and_what_their_driver_reports():
    for name in SAME.split(", "):
        assert find_chip(name.removeprefix("RTX ").lower()).name == name
    for name, typed in TYPED.items():
        assert {find_chip(each).name for each in typed} == {name}


def test_a_chip_of_your_own_is_one_line_and_may_have_a_price(model):
    mine = Chip("Lab card", 100, 800, 16)
    twice = replace(mine, name="Twice", peak_tflop_per_s=200, bandwidth_gb_per_s=1600)
    asked = {"batch": 64, "devices": [mine, twice], "prices": {"Lab card": 2}}
    one, two = estimate(model, X, **asked).rows
    assert one.parts.arithmetic_s == pytest.approx(2 * two.parts.arithmetic_s)
    assert one.parts.memory_s == pytest.approx(2 * two.parts.memory_s)
    assert one.cost == pytest.approx(2 * one.hours)


def test_a_step_that_takes_no_other_batch_is_offered_no_smaller_one():
    class Dense(nn.Linear):
        def forward(self, nodes, edges):
            return edges @ super().forward(nodes)

    inputs = torch.empty(50, 8), torch.empty(50, 50)
    found = estimate(Dense(8, 8), inputs, devices=["T4"], training=False)
    assert list(found.demand.smaller()) == []


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"link": "wire"}, "unknown link 'wire'"),  # one device too
        ({"batches": 3}, "no argument 'batches'"),
        ({"job": Job(), "samples": 3}, "pass samples to the Job"),
        ({"job": 64}, "is a Job, but got 64"),
        ({"devices": [Machine("T4"), Chip("T4", 1, 1, 1)]}, "two unlike chips"),
        ({"devices": [Machine("T4"), Machine("T4", link="Ethernet 10G")]}, "asked for twice"),
        ({"devices": 5}, "devices is a list of names"),
        ({"devices": []}, "devices is empty"),
        ({"devices": "T4"}, r"\['T4'\]"),
        ({"devices": [4]}, "by its name"),
        ({"devices": ["Lab"]}, r"'Lab'.*--help` lists all. For a card of your own pass Chip\("),
        ({"devices": ["cpu"]}, "'cpu' is a kind of device.*this_machine="),
        ({"devices": ["RTX 3060 8GB"]}, "unknown chip 'RTX 3060 8GB': the nearest are RTX 3060"),
        ({"prices": [1]}, "prices is a dictionary"),
        ({"model": nn.Linear}, "must be a"),
        ({"model": nn.LazyLinear(4)}, r"lazy layers.*Call it once"),
        ({"devices": ["RTX4091"]}, "unknown chip 'RTX4091'.*RTX 4090"),
        # the lists of AWS, Google and Azure
        ({"devices": ["g5.12xlarge"]}, "ask for its '4 x A10G'"),
        ({"devices": ["p4d.24xlarge"]}, "ask for its '8 x A100 40GB'"),
        ({"devices": ["a2-ultragpu-2g"]}, "ask for its '2 x A100 80GB'"),
        ({"devices": ["Standard_NC4as_T4_v3"]}, "ask for its 'T4'"),
        ({"devices": ["ml.g5.2xlarge"]}, "ask for its 'A10G'"),
        ({"devices": ["n1-standard-8"]}, "ask for the card that it holds"),
        ({"devices": ["Tesla K80"]}, "too old"),
        ({"devices": ["p2.xlarge"]}, "too old"),
        ({"devices": ["i7-12700H"]}, "a CPU is not estimated"),
        ({"devices": ["Jetson Orin"]}, "the nearest are Jetson"),
        ({"devices": ["M4 Max"], "count": 2}, "M4 Max.*link="),
        ({"devices": ["A100"], "count": 2, "link": "string"}, "unknown link"),
        ({"precision": "bf16"}, "T4.*fp16, fp32"),
        ({"precision": "fp8"}, "unknown precision 'fp8'. Pass one of amp, default, fp32"),
        ({"deadline_hours": -3}, "deadline_hours must be a positive number.*-3"),
        ({"deadline_hours": 10**400}, "deadline_hours must be a positive number"),
        ({"deadline_hours": float("nan")}, "deadline_hours.*nan"),
        ({"deadline_hours": "48"}, "deadline_hours.*'48'"),
        ({"prices": {"T4": -1}}, "T4.*not negative.*-1"),
        ({"prices": {"T4": 1e308}}, "less than a billion"),
        ({"prices": {"T4": float("nan")}}, "nan"),
        ({"prices": {"T4": "0.35"}}, "price that is a number.*'0.35'"),
        ({"prices": {"T4": True}}, "True"),
        ({"prices": {"T5": 1}}, "unknown chip 'T5'"),
        ({"epochs": 10**400}, "epochs must be a positive integer.*too large"),
        ({"samples": 0}, "samples must be a positive integer.*0"),
        ({"epochs": 1.5}, "epochs"),
        ({"batch": -4}, "batch must be a positive integer"),
        ({"shards": 0}, "shards must be a positive integer"),
        ({"count": 0}, "count"),
        ({"this_machine": 0}, "this_machine"),
    ],
)
def test_a_question_without_an_answer_is_refused_in_clear_words(model, asked, words):
    with pytest.raises((ValueError, TypeError), match=words):
        estimate(**{"model": model, "inputs": X, "devices": ["T4"]} | asked)
