"""The training that the launcher's examples start."""

from course_lessons.sample_training import air_rnn
from torch.utils.data import RandomSampler


def test_it_learns_from_96_windows_in_drawn_order_which_many_counts_of_ranks_share_evenly():
    module, loader = air_rnn()
    assert sum(each.numel() for each in module.parameters()) == 481
    inputs, targets = loader.dataset.tensors
    assert inputs.shape == targets.shape == (96, 25, 1)
    assert not any(96 % ranks for ranks in (1, 2, 3, 4, 6, 8))
    assert (inputs.min(), inputs.max()) == (0, 1)  # scaled
    assert loader.batch_size == 16 and isinstance(loader.sampler, RandomSampler)
