"""Train a network on small images with Lightning, where the device is an argument."""

import argparse
import os
import sys
import time
from contextlib import suppress

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, RandomSampler, TensorDataset, random_split

try:
    import lightning.pytorch as pl
except ImportError:  # the same, under its older name
    import pytorch_lightning as pl


# YOUR NETWORK, 1 of 3.
class Network(nn.Module):
    def __init__(self):
        super().__init__()
        blocks = block(3, 32), block(32, 64), block(64, 128)
        self.layers = nn.Sequential(*blocks, nn.Flatten(), nn.Linear(128 * 4 * 4, 10))

    def forward(self, pixels):
        return self.layers(pixels.float() / 127.5 - 1)  # 0 to 255 becomes -1 to 1


def block(inputs, outputs):
    convolution = nn.Conv2d(inputs, outputs, kernel_size=3, padding=1)
    return nn.Sequential(convolution, nn.MaxPool2d(2), nn.ReLU())


# YOUR DATA, 2 of 3: two data sets of pairs (input, target), to train on and to validate.
def load_data(limit):
    from course_lessons.data.images import load_images

    images = load_images(download=False)  # True gets CIFAR-10 instead of drawn images
    data = TensorDataset(images.train[:limit], images.train_labels[:limit])
    held_out = max(1, len(data) // 10)
    seed = torch.Generator().manual_seed(0)  # shuffled: data may be sorted by class
    return random_split(data, [len(data) - held_out, held_out], seed)


# YOUR LOSS AND MEASURE, 3 of 3: these are for classes. A measure is the sum over a batch.
def compute_loss(scores, labels):
    if labels.is_floating_point():
        raise TypeError("The targets are not class numbers: write their own loss here.")
    return F.cross_entropy(scores, labels)


def measure(scores, labels):
    return (scores.argmax(1) == labels).sum()


MEASURE = "accuracy {:.1%}"  # shows the mean of all samples


class Training(pl.LightningModule):
    def __init__(self, lr=1e-3):
        super().__init__()
        self.save_hyperparameters()
        self.network = Network()

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=self.hparams.lr)

    def training_step(self, batch, index):
        inputs, targets = batch
        loss = compute_loss(self.network(inputs), targets)
        self.log("loss", loss, on_step=False, on_epoch=True, sync_dist=True)
        return loss

    def validation_step(self, batch, index):
        inputs, targets = batch
        mean = measure(self.network(inputs), targets) / len(targets)
        self.log("measure", mean, sync_dist=True, batch_size=len(targets))


class Epochs(pl.Callback):
    """Print a line for each, and let a resumed run draw the numbers of an unbroken one."""

    def on_train_start(self, trainer, module):
        lr, done = trainer.optimizers[0].param_groups[0]["lr"], trainer.current_epoch
        module.print(f"{done} of {trainer.max_epochs} epochs done, lr {lr}")

    def on_train_epoch_start(self, trainer, module):
        self.start, sampler = time.perf_counter(), trainer.train_dataloader.sampler
        if isinstance(sampler, RandomSampler):  # with more devices it is Lightning's own
            sampler.generator = torch.Generator().manual_seed(trainer.current_epoch)

    def on_train_batch_start(self, trainer, module, batch, index):
        torch.manual_seed(trainer.global_step * trainer.world_size + trainer.global_rank)

    def on_train_epoch_end(self, trainer, module):
        loss, mean = (trainer.callback_metrics[name] for name in ("loss", "measure"))
        epoch, seconds = trainer.current_epoch + 1, time.perf_counter() - self.start
        result = f"epoch {epoch}  loss {loss:.4f}  {MEASURE.format(mean)}"
        module.print(f"{result}  {seconds:.1f} s", flush=True)


class Checkpoints(pl.plugins.TorchCheckpointIO):
    """Write whole files or none, on any file system, and run no code when they are read."""

    def save_checkpoint(self, checkpoint, path, storage_options=None):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        try:
            torch.save(checkpoint, f"{path}.new")
            os.replace(f"{path}.new", path)
        finally:
            if os.path.exists(f"{path}.new"):  # the disk may be full
                os.remove(f"{path}.new")

    def load_checkpoint(self, path, *_, **__):
        with suppress(Exception):  # what torch raises of a torn or foreign file
            state = torch.load(path, map_location="cpu", weights_only=True)
            if "pytorch-lightning_version" in state or str(path).endswith(".temp.ckpt"):
                return state  # the second is what ddp_spawn's ranks hand back
        sys.exit(f"{path} is not a whole checkpoint of Lightning: omit --resume")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--lr", type=float, default=1e-3, help="learning rate")
    parser.add_argument("--images", type=int, default=50_000, help="use at most so many")
    parser.add_argument("--checkpoint", default="checkpoint.ckpt")
    parser.add_argument("--resume", action="store_true", help="continue it, if it is there")
    parser.add_argument("--accelerator", default="auto")
    parser.add_argument("--devices", default="auto")
    parser.add_argument("--strategy", default="auto")
    parser.add_argument("--precision", default="32-true", help="or bf16-mixed, or 16-mixed")
    args = parser.parse_args()
    if min(args.epochs, args.batch, args.images - 1) < 1 or not 0 < args.lr < 1000:
        parser.error("--epochs and --batch start at 1, --images at 2, and --lr above 0")
    if os.path.isdir(args.checkpoint) or not args.checkpoint.endswith(".ckpt"):
        parser.error(f"--checkpoint {args.checkpoint} must be a file that ends in .ckpt")

    folder, name = os.path.split(os.path.abspath(args.checkpoint))
    saving = pl.callbacks.ModelCheckpoint(
        folder,
        name.removesuffix(".ckpt"),
        save_on_train_epoch_end=True,  # when the epoch counts as done
        enable_version_counter=False,  # one file
    )
    trainer = pl.Trainer(
        accelerator=args.accelerator,
        devices=args.devices,
        strategy=args.strategy,
        precision=args.precision,
        max_epochs=args.epochs,
        callbacks=[saving, Epochs()],
        plugins=[Checkpoints()],
        num_sanity_val_steps=0,
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    there = os.path.exists(args.checkpoint)
    if there and not args.resume and trainer.is_global_zero:
        kept = f"{args.checkpoint}.{os.path.getmtime(args.checkpoint):.0f}"
        os.replace(args.checkpoint, kept)
        print(f"without --resume this is a new run; the last checkpoint is now {kept}")

    torch.manual_seed(0)
    training = Training(args.lr)
    train, valid = load_data(args.images)
    batch = min(args.batch, len(train)) // trainer.world_size
    if batch < 1:
        raise SystemExit(f"--batch {args.batch} is less than one sample for each device")
    train_loader = DataLoader(train, batch, shuffle=True, drop_last=True)
    valid_loader = DataLoader(valid, batch)
    saved = args.checkpoint if there and args.resume else None
    trainer.fit(training, train_loader, valid_loader, ckpt_path=saved)


if __name__ == "__main__":  # ddp_spawn imports this file again in each process
    main()
