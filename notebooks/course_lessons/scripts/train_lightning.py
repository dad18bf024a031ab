"""Train a network on small images with Lightning, where the device is an argument."""

import argparse
import time

import lightning as L
import torch
import torch.nn.functional as F
from lightning.pytorch.callbacks import ModelCheckpoint
from torch import nn
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

from course_utils.data.images import load_images


# YOUR DATA, 1 of 2: return two data sets of (input, label), to train on and to validate.
def load_data(count):
    images = load_images(download=False)  # True gets CIFAR-10 instead of drawn images
    pixels, labels = images.train[:count], images.train_labels[:count]
    held_out = len(pixels) // 10
    train = TensorDataset(pixels[held_out:], labels[held_out:])
    return train, TensorDataset(pixels[:held_out], labels[:held_out])


def block(inputs, outputs):
    convolution = nn.Conv2d(inputs, outputs, kernel_size=3, padding=1)
    return nn.Sequential(convolution, nn.MaxPool2d(2), nn.ReLU())


# YOUR NETWORK, 2 of 2: any module that gives a score for each class.
class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.Sequential(block(3, 32), block(32, 64), block(64, 128))
        self.head = nn.Linear(128 * 4 * 4, 10)

    def forward(self, pixels):
        hidden = self.blocks(pixels.float() / 127.5 - 1)  # 0 to 255 becomes -1 to 1
        return self.head(hidden.flatten(1))


class Training(L.LightningModule):
    def __init__(self, args):
        super().__init__()
        self.args = args
        self.network = Network()
        self.train_data, self.valid_data = load_data(args.images)

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), self.args.lr)

    def train_dataloader(self):
        ranks, rank = self.trainer.world_size, self.trainer.global_rank
        order = DistributedSampler(self.train_data, ranks, rank)
        # Lightning calls set_epoch too, but after a resume the workers draw before it.
        order.set_epoch(self.trainer.fit_loop.epoch_progress.current.processed)
        return self.loader(self.train_data, sampler=order, drop_last=True)

    def val_dataloader(self):
        return self.loader(self.valid_data)

    def loader(self, data, **order):
        # Under ddp_spawn each worker would import everything again.
        workers = 0 if self.args.strategy == "ddp_spawn" else 2
        feed = {"num_workers": workers, "persistent_workers": workers > 0}
        return DataLoader(
            data, self.args.batch // self.trainer.world_size, **feed, **order
        )

    def on_train_epoch_start(self):
        self.start = time.perf_counter()
        torch.manual_seed(
            self.current_epoch * self.trainer.world_size + self.global_rank
        )

    def training_step(self, batch, index):
        pixels, labels = batch
        loss = F.cross_entropy(self.network(pixels), labels)
        self.log("loss", loss, on_step=False, on_epoch=True, sync_dist=True)
        return loss

    def validation_step(self, batch, index):
        pixels, labels = batch
        right = (self.network(pixels).argmax(1) == labels).float()
        self.log("accuracy", right.mean(), sync_dist=True)

    def on_train_epoch_end(self):
        results = self.trainer.callback_metrics
        result = f"loss {results['loss']:.4f}  accuracy {results['accuracy']:.1%}"
        seconds, epoch = time.perf_counter() - self.start, self.current_epoch + 1
        self.print(f"epoch {epoch}  {result}  {seconds:.1f} s", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--images", type=int, help="use only so many images")
    parser.add_argument("--folder", default="checkpoints")
    parser.add_argument("--resume", action="store_true", help="continue the checkpoint")
    parser.add_argument("--accelerator", default="auto")
    parser.add_argument("--devices", default="auto")
    parser.add_argument("--strategy", default="auto")
    parser.add_argument("--precision", default="bf16-mixed")
    args = parser.parse_args()

    torch.manual_seed(0)
    training = Training(args)
    saving = ModelCheckpoint(
        args.folder,
        filename="checkpoint",
        save_on_train_epoch_end=True,  # when the epoch counts as done
        enable_version_counter=False,
    )
    trainer = L.Trainer(
        accelerator=args.accelerator,
        devices=args.devices,
        strategy=args.strategy,
        precision=args.precision,
        max_epochs=args.epochs,
        callbacks=[saving],
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        num_sanity_val_steps=0,
    )
    saved = args.folder + "/checkpoint.ckpt"
    trainer.fit(training, ckpt_path=saved if args.resume else None)


if __name__ == "__main__":  # ddp_spawn imports this file again in each process
    main()
