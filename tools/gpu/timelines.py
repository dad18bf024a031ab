"""Record what the GPU and the CPU did, and when: Chrome traces that Perfetto opens, one for each question.

    python tools/gpu/timelines.py --out DIR [--dry]

A training step of the image CNN; the same with the loss read back in every step; copies from pinned memory beside
work, on a stream of their own; and copies from ordinary memory, which wait.
"""

import argparse
import gzip
import json
from collections.abc import Callable
from pathlib import Path

import torch
from torch.profiler import ProfilerActivity, profile

from course_utils.data.models import ImageCNN
from course_utils.data.shapes import draw_shapes

STEPS = 5


def main() -> None:
    """Write a trace and its summary for each question."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
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
        print(name, json.dumps(summaries[name]))
    (folder / "summary.json").write_text(json.dumps(summaries, indent=1))


def record(work: Callable[[], None], device: torch.device, path: Path) -> dict[str, float]:
    """Run the work once unseen and once under the profiler, keep the trace, and return how busy the device was."""
    work()
    wait(device)
    activities = [ProfilerActivity.CPU] + ([ProfilerActivity.CUDA] if device.type == "cuda" else [])
    with profile(activities=activities) as seen:
        work()
        wait(device)
    plain = path.with_suffix("")
    seen.export_chrome_trace(str(plain))
    trace = plain.read_bytes()
    plain.unlink()
    path.write_bytes(gzip.compress(trace))
    return summary(json.loads(trace)["traceEvents"])


def summary(events: list[dict]) -> dict[str, float]:
    """Return the seconds from the first event to the last, and those in which a kernel or a copy ran.

    Args:
        events: of a Chrome trace, with times in microseconds.
    """
    spans = [event for event in events if event.get("ph") == "X" and "dur" in event]
    found = {
        "kernels": [event for event in spans if event.get("cat") == "kernel"],
        "copies": [event for event in spans if event.get("cat") in ("gpu_memcpy", "gpu_memset")],
    }
    start = min(event["ts"] for event in spans)
    end = max(event["ts"] + event["dur"] for event in spans)
    busy = {f"{name}_s": sum(event["dur"] for event in those) * 1e-6 for name, those in found.items()}
    overlap = covered([*found["kernels"], *found["copies"]])
    return {"total_s": (end - start) * 1e-6, **busy, "device_busy_s": overlap * 1e-6, "events": len(spans)}


def covered(events: list[dict]) -> float:
    """Return how long at least one of these events was going on, in their own unit."""
    total, until = 0.0, float("-inf")
    for event in sorted(events, key=lambda event: event["ts"]):
        start, end = max(event["ts"], until), event["ts"] + event["dur"]
        if end > start:
            total, until = total + end - start, end
    return total


def wait(device: torch.device) -> None:
    """Wait until the device has finished."""
    if device.type == "cuda":
        torch.cuda.synchronize()


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
