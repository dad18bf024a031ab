"""A network on devices that are not here: what is asked, and what the answer says."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest
import torch
from estimate_questions import one_line, plain
from torch import nn

from course_tools.estimate import Chip, Machine, estimate
from course_tools.estimate.counting.count_work import count_work
from course_tools.estimate.memory.estimate_memory import estimate_memory

X = torch.empty(1, 16)


@pytest.fixture(scope="module")
def model():
    return nn.Sequential(nn.Linear(16, 512), nn.ReLU(), nn.Linear(512, 10))


def test_machines_say_what_the_keywords_say(model):
    asked = {"batch": 64, "samples": 10**6}
    grouped = estimate(
        model,
        X,
        devices=["2 x T4", Machine("A100", 8, link="Ethernet 10G")],
        prices={"A100": 1.5},
        **asked,
    )
    assert [row.name for row in grouped.rows] == ["2 x T4", "8 x A100 80GB"]
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


def test_the_layout_is_seen_and_channels_last_trains_faster_in_16_bits():
    net, x = nn.Conv2d(64, 64, 3), torch.empty(1, 64, 56, 56)
    asked = {"batch": 256, "devices": ["V100"], "precision": "fp16"}
    first = estimate(net, x, **asked)
    last = estimate(net.to(memory_format=torch.channels_last), x, **asked)
    assert last.rows[0].hours < first.rows[0].hours
    assert "channels last" in plain(last) and "channels first" in plain(first)
    told = estimate(nn.Conv2d(64, 64, 3), x, channels_last=True, **asked)
    assert told.rows[0].hours == last.rows[0].hours


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
        ({"batches": 3}, "argument 'batches'"),
        ({"devices": []}, "devices is empty"),
        ({"prices": [1]}, "prices is a dictionary"),
        ({"model": nn.Linear}, "must be a"),
        ({"devices": ["M4 Max"], "count": 2}, "M4 Max.*link="),
        ({"precision": "bf16"}, "T4.*fp16, fp32"),
        ({"precision": "fp8"}, "unknown precision 'fp8'. Pass one of amp, default, fp32"),
        ({"deadline_hours": -3}, "deadline_hours must be a positive number.*-3"),
        ({"prices": {"T4": -1}}, "T4.*not negative.*-1"),
        ({"prices": {"T4": "0.35"}}, "price that is a number.*'0.35'"),
        ({"prices": {"T5": 1}}, "unknown chip 'T5'"),
        ({"epochs": 10**400}, "epochs must be a positive integer.*too large"),
        ({"shards": 0}, "shards must be a positive integer"),
        ({"count": 0}, "count"),
        ({"this_machine": 0}, "this_machine"),
    ],
)
def test_a_question_without_an_answer_is_refused_in_clear_words(model, asked, words):
    with pytest.raises((ValueError, TypeError), match=words):
        estimate(**{"model": model, "inputs": X, "devices": ["T4"]} | asked)
