"""How long the image CNN takes to reach 90 % of the offline images held out.

    python tests/benchmarks/train_cnn.py [--device cpu] [--threads 2] [--json FILE]

Training alone is timed; accuracy is measured after each epoch, with the clock stopped. The
process's own CPU time is
printed as well: on a machine that others use, it is what the training would have taken with the
cores to itself.
"""

import argparse
import json
import time

import torch
from torch import nn

from course_utils.data import ShuffledBatches, offline_images
from course_utils.data.models import ImageCNN
from course_utils.devices import pick_device, wait_for
from course_utils.moves import to_device
from course_utils.plain_training import train_plain

GOAL, EPOCHS = 0.9, 12


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--json", help="write the figures to this file")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    device = pick_device(options.device)
    torch.manual_seed(42)
    model, images = to_device((ImageCNN(), offline_images()), device)
    found, clock = [], {"wall_s": 0.0, "cpu_s": 0.0}
    start = [time.perf_counter(), time.process_time()]

    def after(epoch, loss):
        wait_for(device)
        clock["wall_s"] += time.perf_counter() - start[0]
        clock["cpu_s"] += time.process_time() - start[1]
        with torch.no_grad():
            accuracy = (model(images.test).argmax(1) == images.test_labels).float().mean().item()
        found.append({"epoch": epoch, "accuracy": accuracy, **clock})
        print(
            f"epoch {epoch:2}: {accuracy:.1%}, {clock['wall_s']:.1f} s, {clock['cpu_s']:.1f} s "
            "of CPU time"
        )
        start[:] = time.perf_counter(), time.process_time()

    train_plain(
        model,
        images.train,
        images.train_labels,
        batches=ShuffledBatches(len(images.train), 256, seed=42),
        epochs=EPOCHS,
        learning_rate=3e-3,
        loss_fn=nn.functional.cross_entropy,
        on_epoch=after,
    )
    reached = next((row for row in found if row["accuracy"] >= GOAL), None)
    print(f"{GOAL:.0%} on {device} with {options.threads} threads: {reached or 'not reached'}")
    if options.json:
        with open(options.json, "w") as file:
            json.dump(
                {"device": device.name, "threads": options.threads, "epochs": found}, file, indent=1
            )


if __name__ == "__main__":
    main()
