import pytest
import torch
from course_lessons.device_speed.image_step import CNN_STEP, cnn_step
from torch.utils.flop_counter import FlopCounterMode

from course_tools.compare.workloads import build_seeded, using_tf32
from course_utils.devices import pick_device

pytestmark = pytest.mark.usefixtures("one_thread")

CPU = pick_device("cpu")


def test_a_step_trains():
    torch.manual_seed(42)
    step = cnn_step(CPU, 16)
    losses = [step().item() for _ in range(60)]
    assert losses[-1] < 0.9 * losses[0]


def test_a_cnn_step_takes_the_operations_of_its_layers():
    with FlopCounterMode(display=False) as counter:
        cnn_step(CPU, 8)()
    # Multiplications and additions of one image, forward: outputs x inputs to each, of every layer.
    convolutions = [6 * 28 * 28 * 75, 16 * 10 * 10 * 150, 16 * 5 * 5 * 144, 16 * 5 * 5 * 144]
    linears = [400 * 120, 120 * 84, 84 * 10]
    # Backward takes twice as many, once for the weights and once for the inputs, which the first
    # layer leaves out.
    assert counter.get_total_flops() == 2 * 8 * (3 * sum(convolutions + linears) - convolutions[0])


@pytest.mark.parametrize(
    ("precision", "close"), [("fp32", 1e-6), ("tf32", 1e-2), ("bf16", 3e-2), ("fp16", 1e-2)]
)
def test_a_step_in_every_precision_has_nearly_the_same_loss(precision, close):
    torch.manual_seed(42)
    expected = cnn_step(CPU, 4)()
    torch.manual_seed(42)
    assert abs(cnn_step(CPU, 4, precision)().item() - expected.item()) < close


def test_autocast_really_uses_fewer_bits():
    torch.manual_seed(42)
    expected = cnn_step(CPU, 4)()
    torch.manual_seed(42)
    assert cnn_step(CPU, 4, "bf16")().item() != expected.item()


def switches():
    cuda, cudnn = torch.backends.cuda.matmul, torch.backends.cudnn
    if hasattr(cuda, "fp32_precision"):
        return [cuda.fp32_precision, cudnn.conv.fp32_precision, cudnn.rnn.fp32_precision]
    return [cuda.allow_tf32, cudnn.allow_tf32]


# torch 2.9 warns whenever it is asked for the setting that spans its old and new switches, once a
# process.
@pytest.mark.filterwarnings("ignore:Please use the new API settings:UserWarning")
@pytest.mark.parametrize("allowed", [True, False])
def test_tf32_is_switched_inside_the_block_only(allowed):
    before, precision = switches(), torch.get_float32_matmul_precision()
    with pytest.raises(KeyError), using_tf32(allowed):
        assert set(switches()) <= ({"tf32", True} if allowed else {"ieee", False})
        raise KeyError
    assert switches() == before
    # torch raises here when its switches disagree
    assert torch.get_float32_matmul_precision() == precision


def test_building_a_work_leaves_every_generator_of_the_caller_alone(monkeypatch):
    monkeypatch.setattr(
        torch.cuda, "manual_seed_all", lambda seed: pytest.fail("this would reseed the GPU's")
    )
    before = torch.get_rng_state()
    build_seeded(CNN_STEP, 4, pick_device("cpu"), "fp32")
    assert torch.equal(torch.get_rng_state(), before)
