"""Share a model's parameters, gradients and optimizer state between all ranks (FSDP), also on a
CPU.

Lightning's "fsdp" refuses a CPU. Its ModelParallelStrategy does not, and takes PyTorch's own
`fully_shard` (https://docs.pytorch.org/docs/stable/distributed.fsdp.fully_shard.html).
"""

from typing import Any

import torch
from torch.distributed.checkpoint.state_dict import StateDictOptions, set_model_state_dict
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard, register_fsdp_forward_method

from course_utils.launch.messages import LaunchError
from course_utils.launch.reporting import Reporting
from course_utils.lightning import pl

PRECISIONS = {"32-true": None, "bf16-mixed": torch.bfloat16}


class ReportingFSDP(Reporting, pl.strategies.ModelParallelStrategy):
    """FSDP in which every rank reports its own exceptions, and rank 0 writes one checkpoint for
    all.
    """

    def load_checkpoint(self, checkpoint_path: Any, *more: Any, **keywords: Any) -> dict[str, Any]:
        """Load it, also that of an optimizer without state, such as plain SGD, at which Lightning
        2.6 fails.
        """
        state = torch.load(checkpoint_path, map_location="cpu", weights_only=True)
        if any(kept["state"] for kept in state["optimizer_states"]):
            return super().load_checkpoint(checkpoint_path, *more, **keywords)
        module: Any = self.model
        set_model_state_dict(
            module, state.pop("state_dict"), options=StateDictOptions(full_state_dict=True)
        )
        return state


def make_sharded(module: Any, precision: str, accelerator: str) -> None:
    """Let Lightning share a module's parameters, each block of its model and then the rest, once
    the ranks run.

    The precision is that of the arithmetic: parameters are kept and updated in their own.

    Raises:
        LaunchError: FSDP does not train in this precision, or not on a CPU with this torch.
    """
    # whose torch.cpu.Stream has no record_event
    if accelerator == "cpu" and torch.__version__ < "2.7":
        raise LaunchError(
            f"--strategy fsdp needs torch 2.7 or later on a CPU, but this is {torch.__version__}."
        )
    if precision not in PRECISIONS:
        raise LaunchError(
            f"--strategy fsdp trains in {' or '.join(PRECISIONS)}, but got {precision}."
        )
    dtype = PRECISIONS[precision]
    policy = MixedPrecisionPolicy(param_dtype=dtype, reduce_dtype=torch.float32 if dtype else None)

    def shard() -> None:
        # without it fully_shard takes a GPU that is here, also for a CPU
        mesh = module.device_mesh["data_parallel"]
        for part in module.children():
            for block in part.children():
                if any(True for _ in block.parameters()):
                    fully_shard(block, mesh=mesh, mp_policy=policy)
        fully_shard(module, mesh=mesh, mp_policy=policy)
        register_fsdp_forward_method(module, "training_step")

    module.configure_model = shard
