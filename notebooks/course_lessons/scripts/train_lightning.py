"""Train a network on small images with Lightning, where the device is an argument."""

import argparse
import time

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset, random_split

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
    def __init__(self, args):
        super().__init__()
        self.network, self.batch, self.lr = Network(), args.batch, args.lr
        self.train_data, self.valid_data = load_data(args.images)

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=self.lr)

    def train_dataloader(self):
        ranks, rank = self.trainer.world_size, self.trainer.global_rank
        order = DistributedSampler(self.train_data, ranks, rank)  # Lightning sets its epoch
        batch = min(self.batch, len(self.train_data)) // ranks
        return DataLoader(self.train_data, batch, sampler=order, drop_last=True)

    def val_dataloader(self):
        return DataLoader(self.valid_data, self.batch // self.trainer.world_size)

    def on_train_epoch_start(self):
        self.start = time.perf_counter()
        torch.manual_seed(self.current_epoch * self.trainer.world_size + self.global_rank)

    def training_step(self, batch, index):
        pixels, labels = batch
        loss = compute_loss(self.network(pixels), labels)
        self.log("loss", loss, on_step=False, on_epoch=True, sync_dist=True)
        return loss

    def validation_step(self, batch, index):
        pixels, labels = batch
        mean = measure(self.network(pixels), labels) / len(labels)
        self.log("measure", mean, sync_dist=True)

    def on_train_epoch_end(self):
        results = self.trainer.callback_metrics
        result = f"loss {results['loss']:.4f}  {MEASURE.format(results['measure'])}"
        seconds, epoch = time.perf_counter() - self.start, self.current_epoch + 1
        self.print(f"epoch {epoch}  {result}  {seconds:.1f} s", flush=True)


if __name__ == "__main__":  # ddp_spawn imports this file again in each process
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--lr", type=float, default=1e-3, help="learning rate")
    parser.add_argument("--images", type=int, default=50_000, help="use at most so many")
    parser.add_argument("--resume", action="store_true", help="continue the checkpoint")
    parser.add_argument("--accelerator", default="auto")
    parser.add_argument("--devices", default="auto")
    parser.add_argument("--strategy", default="auto")
    parser.add_argument("--precision", default="bf16-mixed", help="16-mixed on a T4")
    args = parser.parse_args()

    torch.manual_seed(0)
    # Keep one file, saved when the epoch counts as done.
    one = {"save_on_train_epoch_end": True, "enable_version_counter": False}
    saving = pl.callbacks.ModelCheckpoint("checkpoints", "checkpoint", **one)
    quiet = ["logger", "enable_progress_bar", "enable_model_summary"]
    trainer = pl.Trainer(
        accelerator=args.accelerator,
        devices=args.devices,
        strategy=args.strategy,
        precision=args.precision,
        max_epochs=args.epochs,
        callbacks=[saving],
        num_sanity_val_steps=0,
        **dict.fromkeys(quiet, False),
    )
    saved = "checkpoints/checkpoint.ckpt" if args.resume else None
    trainer.fit(Training(args), ckpt_path=saved)
