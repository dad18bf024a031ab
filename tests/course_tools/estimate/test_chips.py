"""Chips: plausible figures, and the names by which people ask for them."""

import re

import pytest

from course_tools.estimate import Chip
from course_tools.estimate.chips import all_chips, all_links, find_chip


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


def test_the_16_bits_of_a_chip_are_bf16_where_it_has_them():
    assert [find_chip(name).at("amp") for name in ("A100", "T4")] == ["bf16", "fp16"]


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


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ("Lab", r"'Lab'.*--help` lists all. For a card of your own .* Chip\("),
        ("cpu", "'cpu' is a kind of device.*this_machine="),
        ("RTX 3060 8GB", "unknown chip 'RTX 3060 8GB': the nearest are RTX 3060"),
        ("RTX4091", "unknown chip 'RTX4091'.*RTX 4090"),
        # the lists of AWS, Google and Azure
        ("g5.12xlarge", "ask for its '4 x A10G'"),
        ("p4d.24xlarge", "ask for its '8 x A100 40GB'"),
        ("a2-ultragpu-2g", "ask for its '2 x A100 80GB'"),
        ("Standard_NC4as_T4_v3", "ask for its 'T4'"),
        ("ml.g5.2xlarge", "ask for its 'A10G'"),
        ("n1-standard-8", "ask for the card that it holds"),
        ("Tesla K80", "too old"),
        ("p2.xlarge", "too old"),
        ("i7-12700H", "a CPU is not estimated"),
        ("Jetson Orin", "the nearest are Jetson"),
    ],
)
def test_a_name_of_no_chip_is_answered_with_what_to_ask(typed, words):
    with pytest.raises(ValueError, match=words):
        find_chip(typed)
