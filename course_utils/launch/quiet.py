"""What Lightning need not say."""

import logging
import warnings


def calm_lightning() -> None:
    """Keep Lightning's advertisements and the advice that does not apply to a lesson out of the output."""
    for name in ("lightning.pytorch", "lightning.fabric", "pytorch_lightning", "lightning_fabric"):
        logging.getLogger(name).setLevel(logging.WARNING)
    for message in ("does not have many workers", "directory .* exists and is not empty", "number of training batches"):
        warnings.filterwarnings("ignore", message=f".*{message}")
