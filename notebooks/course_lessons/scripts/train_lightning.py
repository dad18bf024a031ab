"""Train a network on small images with Lightning, where the device is an argument."""

import argparse
import os
import sys
import tempfile
import time
import warnings

# Lightning imports matplotlib, which asks for a home folder.
if os.path.expanduser("~") == "~":
    os.environ["HOME"] = tempfile.gettempdir()

import torch
import torch.nn.functional as F
from torch import nn
from torch.optim.lr_scheduler import ReduceLROnPlateau
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


# YOUR DATA, 2 of 3: pairs (input, target) to train on and to validate. `limit` is --images.
def load_data(limit):
    from course_lessons.data.images import load_images

    images = load_images(download=False)  # True gets CIFAR-10 instead of drawn images
    data = TensorDataset(images.train[:limit], images.train_labels[:limit])
    held_out = max(1, len(data) // 10)
    seed = torch.Generator().manual_seed(0)  # shuffled: data may be sorted by class
    return random_split(data, [len(data) - held_out, held_out], seed)


# Turns a list of samples into a batch (inputs, targets). Write your own to pad sentences.
collate = torch.utils.data.default_collate


# YOUR LOSS AND METRIC, 3 of 3: these are for classes. Each is a mean over the batch.
def compute_loss(scores, labels):
    if labels.is_floating_point():
        raise TypeError("The targets are not class numbers: write a loss for them here.")
    return F.cross_entropy(scores, labels)


def measure(scores, labels):
    return (scores.argmax(1) == labels).float().mean()


METRIC = "accuracy {:.1%}"  # shows the mean of all samples


class Training(pl.LightningModule):
    def __init__(self, lr=1e-3):
        super().__init__()
        self.save_hyperparameters()
        self.network = Network()

    def configure_optimizers(self):
        optimizer = torch.optim.AdamW(self.parameters(), self.hparams.lr, weight_decay=0.01)
        scheduler = ReduceLROnPlateau(optimizer, factor=0.1, patience=2, threshold=0)
        return {
            "optimizer": optimizer,
            "lr_scheduler": {"scheduler": scheduler, "monitor": "valid_loss"},
        }

    def on_train_start(self):
        optimizer = self.optimizers(use_pl_optimizer=False)  # with the checkpoint's state
        if optimizer.defaults.keys() - optimizer.param_groups[0].keys():
            sys.exit(f"{self.trainer.ckpt_path} is of another optimizer: omit --resume")

    def lr_scheduler_step(self, scheduler, metric):
        pass  # Lightning asks after the checkpoint is saved, which is too late for --resume

    def on_train_epoch_end(self):
        self.lr_schedulers().step(self.trainer.callback_metrics["valid_loss"])

    def training_step(self, batch, index):
        inputs, targets = batch
        loss = compute_loss(self.network(inputs), targets)
        how = {"on_step": False, "on_epoch": True, "sync_dist": True, "batch_size": 1}
        self.log("loss", loss, **how)  # all batches have the same size
        return loss

    def validation_step(self, batch, index):
        inputs, targets = batch
        outputs, loader = self.network(inputs), self.trainer.val_dataloaders
        left = len(loader.sampler) - index * loader.batch_size
        count = min(left, loader.batch_size)
        how = {"sync_dist": True, "batch_size": count}
        self.log("valid_loss", compute_loss(outputs, targets), **how)
        means = torch.as_tensor(measure(outputs, targets), device=self.device)
        if means.numel() not in (1, count):
            shape = list(means.shape)
            raise ValueError(f"measure gives numbers of shape {shape}, not a mean")
        self.log("measure", means.float().mean(), **how)


class Epochs(pl.Callback):
    """Print a line per epoch; give a resumed run the random numbers of an unbroken one."""

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
        result = f"epoch {epoch}  loss {loss:.4f}  {METRIC.format(mean)}"
        module.print(f"{result}  {seconds:.1f} s", flush=True)


# KEEP THE CHECKPOINT SAFE: skip this class at first.
class Checkpoints(pl.plugins.TorchCheckpointIO):
    """Write whole files or none, on a local disk, and run no code when they are read."""

    def save_checkpoint(self, checkpoint, path, storage_options=None):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        new = f"{path}.{os.getpid()}.new"
        try:
            torch.save(checkpoint, new)
            if checkpoint.get("epoch") == 0 and os.path.exists(path):  # a new run's first
                old = f"{path}.{time.strftime('%Y-%m-%d-%H%M%S')}-{os.getpid()}"
                os.replace(path, old)
                print(f"the previous run's checkpoint is now {old}")
            os.replace(new, path)
        except (OSError, RuntimeError) as error:  # the second by torch: a full disk
            sys.exit(f"{path} cannot be saved; is the disk full? ({error!r:.80})")
        finally:
            if os.path.exists(new):
                os.remove(new)

    def load_checkpoint(self, path, *_, **__):
        try:
            state = torch.load(path, map_location="cpu", weights_only=True)
            if str(path).endswith(".temp.ckpt"):
                return state  # what ddp_spawn's ranks hand back
            if "pytorch-lightning_version" not in state:
                raise ValueError("no version of Lightning")
            Training().load_state_dict(state["state_dict"])  # fails with another network
            return state
        except Exception as error:  # torch raises many kinds for torn and foreign files
            why = f"is not a whole checkpoint of Lightning ({error!r:.80})"
            sys.exit(f"{path} {why}: omit --resume")


def main():
    if hasattr(os, "getuid"):  # torch asks for a name; a container may have none
        os.environ.setdefault("USER", f"user-{os.getuid()}")
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--lr", type=float, default=1e-3, help="learning rate")
    parser.add_argument("--images", type=int, default=50_000, help="use at most this many")
    parser.add_argument("--checkpoint", default="checkpoint.ckpt")
    parser.add_argument("--resume", action="store_true", help="continue it, if it is there")
    parser.add_argument("--accelerator", default="auto")
    parser.add_argument("--devices", default="auto")
    parser.add_argument("--strategy", default="auto")
    parser.add_argument("--precision", default="32-true", help="or bf16-mixed, or 16-mixed")
    args = parser.parse_args()
    if min(args.epochs, args.batch, args.images - 1) < 1 or not 0 < args.lr < 1000:
        parser.error("--epochs and --batch start at 1, --images at 2, and --lr above 0")
    there = os.path.exists(args.checkpoint)
    if (there and not os.path.isfile(args.checkpoint)) or args.checkpoint[-5:] != ".ckpt":
        parser.error(f"--checkpoint {args.checkpoint!r} must be a file that ends in .ckpt")
    folder, name = os.path.split(os.path.abspath(args.checkpoint))
    try:
        os.makedirs(folder, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()  # fails here, not after an epoch
    except OSError as error:
        why = f"cannot be written: {error}. Choose another."
        sys.exit(f"--checkpoint {args.checkpoint!r} {why}")
    warnings.filterwarnings("error", "Using a target size")  # (n, 1) against (n,)

    save = pl.callbacks.ModelCheckpoint
    name = name.removesuffix(".ckpt")
    # The last one is saved when its epoch counts as done, in one file.
    last = save(folder, name, save_on_train_epoch_end=True, enable_version_counter=False)
    best = save(folder, f"{name}-best", monitor="valid_loss", save_on_train_epoch_end=True)
    try:
        trainer = pl.Trainer(
            accelerator=args.accelerator,
            devices=args.devices,
            strategy=args.strategy,
            precision=args.precision,
            max_epochs=args.epochs,
            gradient_clip_val=1.0,
            callbacks=[last, best, Epochs()],
            plugins=[Checkpoints()],
            num_sanity_val_steps=0,
            logger=False,
            enable_progress_bar=False,
            enable_model_summary=False,
        )
    except Exception as error:  # Lightning raises several kinds for what is not there
        asked = f"--accelerator {args.accelerator} --devices {args.devices}"
        asked += f" --strategy {args.strategy} --precision {args.precision}"
        parser.error(" ".join(f"Lightning refuses {asked}: {error}".split()))

    torch.manual_seed(0)
    training = Training(args.lr)
    train, valid = load_data(args.images)
    batch = min(args.batch, len(train)) // trainer.world_size
    if batch < 1:
        raise SystemExit(f"--batch {args.batch} is less than one sample for each device")
    config = {"batch_size": batch, "collate_fn": collate}
    train_loader = DataLoader(train, shuffle=True, drop_last=True, **config)
    valid_loader = DataLoader(valid, **config)
    saved = args.checkpoint if there and args.resume else None
    trainer.fit(training, train_loader, valid_loader, ckpt_path=saved)


if __name__ == "__main__":  # ddp_spawn imports this file again in each process
    main()
