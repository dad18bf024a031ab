import collections
import dataclasses
import gc
import itertools
import weakref

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from lightning.fabric.utilities.apply_func import move_data_to_device
from torch.nn.utils.rnn import pack_sequence

from course_utils.devices import Device, pick_device
from course_utils.transfers import to_device

META = torch.device("meta")
NOWHERE = Device("meta", 0, "a device without data, which every machine has")
Pair = collections.namedtuple("Pair", "left right")


@dataclasses.dataclass
class Batch:
    inputs: object
    name: object


@dataclasses.dataclass(frozen=True, slots=True)
class Sealed:
    inputs: object
    later: object = dataclasses.field(init=False, default=3)


class Mine(list):
    """A list of a program's own."""


POOL = [torch.arange(3.0), torch.ones(2, 2, dtype=torch.int64), torch.tensor(True), torch.empty(0)]
LEAVES = (
    st.sampled_from(POOL)
    | st.none()
    | st.integers()
    | st.text(max_size=3)
    | st.booleans()
    | st.binary(max_size=3)
)


def containers(inside):
    return (
        st.lists(inside, max_size=4)
        | st.lists(inside, max_size=4).map(tuple)
        | st.dictionaries(st.text(max_size=2) | st.integers(), inside, max_size=4)
        | st.builds(Pair, inside, inside)
        | st.builds(Batch, inside, inside)
    )


TREES = st.recursive(LEAVES, containers, max_leaves=12)


def flat(obj):
    """Return the leaves of a nesting and its shape, written by hand: neither optree's nor ours."""
    if dataclasses.is_dataclass(obj):
        parts = [getattr(obj, field.name) for field in dataclasses.fields(obj)]
    elif isinstance(obj, dict):
        parts = list(obj.values())
    elif isinstance(obj, list | tuple):
        parts = list(obj)
    else:
        return [obj], "leaf"
    inner = [flat(part) for part in parts]
    keys = list(obj) if isinstance(obj, dict) else None
    return [leaf for leaves, _ in inner for leaf in leaves], (
        type(obj),
        keys,
        [shape for _, shape in inner],
    )


@given(TREES)
def test_moving_keeps_the_structure_what_is_no_tensor_what_is_one_tensor_and_the_original(tree):
    before, shape = flat(tree)
    after, moved_shape = flat(to_device(tree, NOWHERE))
    original, same_shape = flat(tree)
    assert shape == moved_shape == same_shape
    assert all(old is new for old, new in zip(before, original, strict=True))
    for old, new in zip(before, after, strict=True):
        if isinstance(old, torch.Tensor):
            assert new.device == META and new.shape == old.shape and new.dtype == old.dtype
        else:
            assert new is old
    places = [index for index, leaf in enumerate(before) if isinstance(leaf, torch.Tensor)]
    for one, other in itertools.combinations(places, 2):
        assert (before[one] is before[other]) == (after[one] is after[other])


@given(TREES)
def test_moving_to_where_it_is_copies_no_tensor(tree):
    assert all(
        old is new for old, new in zip(flat(tree)[0], flat(to_device(tree, "cpu"))[0], strict=True)
    )


@given(
    st.recursive(
        LEAVES, lambda inside: st.lists(inside) | st.builds(Pair, inside, inside), max_leaves=8
    )
)
def test_lightning_moves_the_same_tree_to_the_same_place(tree):
    ours, theirs = to_device(tree, NOWHERE), move_data_to_device(tree, META)
    assert flat(ours)[1] == flat(theirs)[1]
    for mine, its in zip(flat(ours)[0], flat(theirs)[0], strict=True):
        assert getattr(mine, "device", mine) == getattr(its, "device", its)


def move_there_and_back() -> None:
    kinds = (torch.float32, torch.int64, torch.bool, torch.uint8)
    tensors = {kind: torch.arange(6).to(kind).reshape(2, 3) for kind in kinds}
    batch = {"all": tensors, "twice": [tensors[torch.int64]] * 2, "name": "x"}
    there = to_device(batch, "xla")
    assert {tensor.device.type for tensor in there["all"].values()} == {"xla"}
    assert there["twice"][0] is there["twice"][1] and there["name"] == "x"
    back = to_device(there, "cpu")
    for kind in kinds:
        assert torch.equal(back["all"][kind], tensors[kind]) and back["all"][kind].dtype == kind


def test_values_survive_the_way_to_a_second_device_and_back(in_xla):
    in_xla(move_there_and_back)


def test_a_frozen_dataclass_with_slots_is_moved():
    moved = to_device(Sealed(POOL[0]), NOWHERE)
    assert moved.inputs.device == META and moved.later == 3


@pytest.mark.parametrize(
    "make", [collections.OrderedDict, collections.UserDict, type("Mine", (dict,), {})]
)
def test_a_kind_of_dict_keeps_its_kind_and_its_keys(make):
    original = make(b=POOL[0], a=1)
    moved = to_device(original, NOWHERE)
    assert type(moved) is make
    assert list(moved) == ["b", "a"]
    assert moved["b"].device == META
    assert moved["a"] == 1
    assert original["b"] is POOL[0]


def test_a_kind_of_list_keeps_its_kind():
    original = Mine([POOL[0], 1])
    moved = to_device(original, NOWHERE)
    assert type(moved) is Mine and moved[0].device == META and moved[1] == 1
    assert original[0] is POOL[0]


def test_a_packed_sequence_moves_itself_and_keeps_its_batch_sizes_on_the_cpu():
    packed = pack_sequence([torch.ones(3), torch.ones(2)])
    moved = to_device([packed], NOWHERE)[0]
    assert moved.data.device == META and moved.batch_sizes.device.type == "cpu"


def test_nothing_keeps_a_moved_batch_alive_once_it_is_let_go():
    batch = {"pair": [torch.ones(3), Batch(torch.ones(2), None)]}
    gc.disable()  # what is freed without it is freed at once: a GPU's memory cannot wait
    try:
        moved = to_device(batch, NOWHERE)
        watched = [weakref.ref(leaf) for leaf in flat([batch, moved])[0] if leaf is not None]
        del batch, moved
        assert len(watched) == 4 and all(ref() is None for ref in watched)
    finally:
        gc.enable()


class Sample:
    def __init__(self, number):
        self.number = number

    def to(self, device):
        return self.number


class Decoded(list):
    """Samples that are made when they are asked for, and live no longer than that."""

    def __iter__(self):
        return map(Sample, range(len(self)))


def test_what_lives_for_a_moment_is_not_taken_for_the_next_one_at_its_address():
    moved = to_device(Decoded([None] * 50), NOWHERE)
    assert [list.__getitem__(moved, number) for number in range(50)] == [*range(50)]


def test_a_module_is_moved_in_place_and_its_buffers_too():
    model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.BatchNorm1d(2))
    assert to_device({"model": model}, NOWHERE)["model"] is model
    assert {tensor.device for tensor in (*model.parameters(), *model.buffers())} == {META}


class MovesItself:
    def __init__(self, answer):
        self.moves, self.answer = [], answer

    def to(self, device):
        self.moves.append(device)
        return self if self.answer else None


@pytest.mark.parametrize("answer", [True, False])
def test_an_object_that_can_move_is_asked_once_even_when_it_returns_nothing(answer):
    batch = MovesItself(answer)
    assert to_device([batch, {"again": batch}], NOWHERE) == [batch, {"again": batch}]
    assert batch.moves == [NOWHERE.torch_device]


def test_classes_and_sizes_are_left_alone():
    things = [torch.Tensor, Batch, torch.Size([1, 2]), torch.float32, {1, 2}]
    assert to_device(things, NOWHERE) == things


class Watched(torch.Tensor):
    def to(self, *arguments, **switches):
        self.asked = switches
        return self


@pytest.mark.parametrize(
    ("device", "asked"),
    # MPS may read the tensor after it was freed (pytorch/pytorch 189690)
    [(NOWHERE, {"non_blocking": True}), ("cpu", {}), (Device("mps", 0, "a Mac's"), {})],
    ids=["to a device", "to the CPU", "to a Mac's GPU"],
)
def test_only_copies_for_which_it_is_safe_are_queued(device, asked):
    tensor = torch.ones(2).as_subclass(Watched)
    to_device([tensor], device, non_blocking=True)
    assert tensor.asked == asked


def test_a_device_may_be_a_device_its_name_or_the_best_one(monkeypatch):
    monkeypatch.setenv("COURSE_DEVICE", "cpu")
    for device in (None, "cpu", torch.device("cpu"), pick_device("cpu")):
        assert to_device([POOL[0]], device)[0] is POOL[0]


def test_an_error_of_the_move_itself_is_not_hidden():
    with pytest.raises(NotImplementedError, match="Cannot copy out of meta tensor"):
        to_device([POOL[0].to(META)], "cpu")


def test_moving_reads_no_value_of_a_key():
    """The state of an optimizer has tensors as keys: to write one down would fetch it from the
    device.
    """

    class Key(torch.nn.Parameter):
        def __repr__(self):
            raise AssertionError("this key was written down")

    state = {Key(torch.ones(2)): {"step": torch.ones(1)}}
    assert to_device(state, "cpu").keys() == state.keys()
