"""Record what the GPU and the CPU did, and when: Chrome traces that Perfetto opens, one for each
question.

    python tools/gpu/timelines.py --out DIR [--dry]

A training step of the image CNN; the same with the loss read back in every step; copies from pinned
memory beside work, on a stream of their own; and copies from ordinary memory, which wait.
"""

import argparse
import json
from collections.abc import Callable
from pathlib import Path

import torch

from course_utils.data.drawn_images import draw_shapes
from course_utils.data.models import ImageCNN
from course_utils.timeline.lanes import union
from course_utils.timeline.record import Timeline, timeline

STEPS = 5
KINDS = {"device": "kernels", "copies": "copies"}


def main() -> None:
    """Write a trace and its summary for each question."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--dry", action="store_true")
    asked = parser.parse_args()
    device = torch.device("cpu" if asked.dry else "cuda")
    folder = asked.out / "timelines"
    folder.mkdir(parents=True, exist_ok=True)
    batch = 16 if asked.dry else 512
    summaries = {}
    for name, work in questions(device, batch).items():
        path = folder / f"{name}.json.gz"
        summaries[name] = record(work, device, path)
        print(name, json.dumps(summaries[name]), flush=True)
        (folder / "summary.json").write_text(json.dumps(summaries, indent=1))


def record(work: Callable[[], None], device: torch.device, path: Path) -> dict[str, float]:
    """Run the work once unseen and once under the profiler, keep the trace, and return how busy the
    device was.
    """
    found = timeline(work, device=str(device))
    found.save(path)
    path.with_name(path.name.replace(".json.gz", ".png")).write_bytes(found.plot().png)
    return summary(found)


def summary(found: Timeline) -> dict[str, float]:
    """Return the seconds from the first event to the last, and those in which a kernel, a copy, or
    either ran.
    """
    work = {
        kind: [span for lane in found.lanes if lane.kind == kind for span in lane.work]
        for kind in KINDS
    }
    busy = {
        f"{name}_s": sum(span.seconds for span in union(work[kind])) for kind, name in KINDS.items()
    }
    either = sum(
        span.seconds for span in union([span for spans in work.values() for span in spans])
    )
    operations = sum(len(lane.work) for lane in found.lanes)
    return {"total_s": found.end_s, **busy, "device_busy_s": either, "operations": operations}


def questions(device: torch.device, batch: int) -> dict[str, Callable[[], None]]:
    """Return the work of each trace by its name."""
    images, labels = (part.to(device) for part in draw_shapes(batch, seed=42))
    model = ImageCNN().to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)

    def step() -> torch.Tensor:
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        return loss.detach()

    def queued() -> None:
        for _ in range(STEPS):
            step()

    def read_back() -> None:
        for _ in range(STEPS):
            step().item()

    found = {"cnn-step": queued, "cnn-step-with-item": read_back}
    if device.type == "cuda":
        found |= {
            "copies-pinned": copies(step, batch, pinned=True),
            "copies-pageable": copies(step, batch, pinned=False),
        }
    return found


def copies(step: Callable[[], torch.Tensor], batch: int, *, pinned: bool) -> Callable[[], None]:
    """Return work that copies the next batch on a stream of its own while a step computes."""
    source = torch.zeros(64 * batch, 3, 32, 32)
    source = source.pin_memory() if pinned else source
    target = torch.empty_like(source, device="cuda")
    stream = torch.cuda.Stream()

    def work() -> None:
        for _ in range(STEPS):
            with torch.cuda.stream(stream):
                target.copy_(source, non_blocking=True)
            step()

    return work


if __name__ == "__main__":
    main()
