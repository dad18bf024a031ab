"""Cut the steps that the lessons show out of traces of real GPUs that others have published.

    python tools/cut_recordings.py --kineto FOLDER --hta FOLDER

Each folder is a clone of the repository, with its history: github.com/pytorch/kineto and
github.com/facebookresearch/HolisticTraceAnalysis. Written are one small file for each recording,
the two licences, and an index with the source of each (notebooks/course_lessons/recordings).

An event keeps its name, its times, its thread, and the number that ties a kernel to its launch.
Left out are operations inside other operations, queries of the driver, shapes, stacks, and the
names of people and hosts.
"""

import argparse
import gzip
import json
import re
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

from course_tools.timeline.trace import complete_events, steps_of
from course_utils.whole_file import write_whole

FOLDER = Path(__file__).parent.parent / "notebooks" / "course_lessons" / "recordings"
REPOSITORIES = {
    "kineto": {
        "source": "github.com/pytorch/kineto",
        "commit": "041e7ce99f1562dd81232ee58b7c454ef16bfae2",
        "licence": "BSD-3-Clause",
        "licence_file": "tb_plugin/LICENSE",
    },
    "hta": {
        "source": "github.com/facebookresearch/HolisticTraceAnalysis",
        "commit": "f4d0062c382f42bd8a74838bcdad1916c7d5d2da",
        "licence": "MIT",
        "licence_file": "LICENSE",
    },
}
ON_DEVICE = ("kernel", "gpu_memcpy", "gpu_memset")
DRIVER = ("cuda_runtime", "cuda_driver")
CALLS = re.compile(r"Launch|Memcpy|Memset|Synchronize")  # of the driver; most others are queries
READ = "aten::_local_scalar_dense"  # what `.item()` does: it lies inside `aten::item`


@dataclass(frozen=True)
class Recording:
    """One recording: where it is from, which steps are shown, and what was run."""

    name: str
    repository: str
    path: str
    steps: tuple[int, ...]
    card: str
    recorded: str
    ran: str
    note: str = ""


KINETO_RAN = (
    "ResNet-50, batches of 32 CIFAR-10 images resized to 224 pixels, SGD, with {} "
    "(tb_plugin/examples/resnet50_profiler_api.py as it was at be239c04)"
)
KINETO_NOTE = (
    "The profiler also recorded shapes, memory and stacks, which slows the host down. "
    "Six steps were recorded in a row, and this one is from their middle. "
)
RECORDINGS = (
    Recording(
        "resnet50_no_worker",
        "kineto",
        "tb_plugin/samples/resnet50_num_workers_0/worker0.1623143566756.pt.trace.json.gz",
        (17,),
        "V100 32 GB",
        "June 2021",
        KINETO_RAN.format("no worker"),
        KINETO_NOTE + "All six took 149 to 159 ms.",
    ),
    Recording(
        "resnet50_four_workers",
        "kineto",
        "tb_plugin/samples/resnet50_num_workers_4/worker0.1623213129365.pt.trace.json.gz",
        (17,),
        "V100 32 GB",
        "June 2021",
        KINETO_RAN.format("four workers"),
        KINETO_NOTE + "Four took 118 to 127 ms; the first and the last took 160 and 207 ms, "
        "not because of the loader.",
    ),
    Recording(
        "resnet50_v100",
        "hta",
        "tests/data/ns_resolution_trace/rank-0.Apr_03_18_51_38.1102.pt.trace.json.gz",
        (104,),
        "V100 32 GB",
        "April 2024",
        "ResNet-50 (by its operations) under DDP with a single rank; the job is called "
        "pytorch_resnet_integration_test",
        "Its data are made on the GPU: the trace has no copies from the host.",
    ),
    Recording(
        "resnet50_two_a100",
        "hta",
        "tests/data/nccl_parser_config/nccl_data.json.gz",
        (5,),
        "A100 40 GB",
        "May 2024",
        "ResNet-50 (by its operations) under DDP, rank 0 of 2",
    ),
    Recording(
        "eight_a100",
        "hta",
        "tests/data/trace_diff/control/control.json.gz",
        (1012,),
        "A100 40 GB",
        "August 2022",
        "a recommender with embedding tables on all GPUs (by its operations), rank 3 of 8, Adagrad",
    ),
    Recording(
        "sixteen_a100",
        "hta",
        "tests/data/negative_queue_length_values_check/rank0.json.gz",
        (551,),
        "A100 80 GB",
        "May 2023",
        "a recommender with embedding tables on all GPUs (by its operations), compiled and "
        "launched as CUDA graphs, rank 0 of 16",
    ),
    Recording(
        "tiny_mi250",
        "hta",
        "tests/data/amd_trace/mi250_minitoy_train_ROCm6_2_kineto.json.gz",
        (1,),
        "AMD MI250",
        "December 2024",
        "one step of a network with a single layer, ROCm 6.2",
        "One call takes 6.5 ms, probably because its kernel is loaded then: it is a first step.",
    ),
)


# Of torch.profiler's `export_memory_timeline`, its events in time between two moments, in
# milliseconds from the first: the second of five steps.
MEMORY_MS = (188.0, 387.0)
MEMORY = Recording(
    "resnet50_memory",
    "hta",
    "tests/data/memory_analysis/memory_timeline.raw.gz",
    (2,),
    "a GPU that is not named",
    "October 2023",
    "ResNet-50 (by the bytes of its parameters), 32 images of 224 pixels (by the bytes of its "
    "input), SGD with momentum",
    "Sizes are those of tensors; the allocator keeps more.",
)


def git_show(folder: str, commit: str, path: str) -> bytes:
    """Return a file of a commit."""
    command = ["git", "-C", folder, "show", f"{commit}:{path}"]
    return subprocess.run(command, check=True, capture_output=True).stdout


def cut(trace: dict[str, Any], numbers: tuple[int, ...]) -> dict[str, Any]:
    """Return the steps with these numbers as a trace of their own."""
    events = complete_events(trace)
    wanted = [f"ProfilerStep#{number}" for number in numbers]
    steps = [step for step in steps_of(events) if step["name"] in wanted]
    start, end = steps[0]["ts"], steps[-1]["ts"] + steps[-1]["dur"]
    kept = []
    open_until: dict[Any, float] = {}  # by thread, the end of its outermost operation
    for event in sorted(events, key=lambda event: (event["ts"], -event["dur"])):
        if event["ts"] >= end or event["ts"] + event["dur"] <= start:
            continue
        if event["name"].startswith("ProfilerStep") and event["name"] not in wanted:
            continue
        if event["cat"] in DRIVER and not CALLS.search(event["name"]):
            continue
        thread = event["pid"], event["tid"]
        if event["cat"] == "cpu_op":
            inside = event["ts"] + event["dur"] <= open_until.get(thread, -1.0)
            if inside and event["name"] != READ:
                continue
            open_until[thread] = max(open_until.get(thread, -1.0), event["ts"] + event["dur"])
        kept.append(_reduced(event))
    cards = {event["pid"] for event in kept if event["cat"] in ON_DEVICE}
    devices = [one for one in trace.get("deviceProperties", []) if one["id"] in cards]
    names = ("id", "name", "totalGlobalMem")
    ranks = {key: trace.get("distributedInfo", {}).get(key) for key in ("rank", "world_size")}
    return {
        "deviceProperties": [{name: device[name] for name in names} for device in devices],
        "distributedInfo": {key: number for key, number in ranks.items() if number is not None},
        "traceEvents": kept,
    }


def _reduced(event: dict[str, Any]) -> dict[str, Any]:
    small = {key: event[key] for key in ("ph", "cat", "name", "pid", "tid", "ts", "dur")}
    number = event.get("args", {}).get("correlation")
    if number is not None and event["cat"] in ON_DEVICE + DRIVER:
        small["args"] = {"correlation": number}
    return small


def cut_memory(events: list[list[int]], between_ms: tuple[float, float]) -> dict[str, Any]:
    """Return the changes of memory in between, and the bytes by category before them. An event is
    a time in nanoseconds, an action, bytes, and a category.
    """
    first = min(event[0] for event in events if event[0] > 0)  # before it, what was there already
    start, end = (first + 1e6 * moment for moment in between_ms)
    before = [0] * (1 + max(event[3] for event in events))
    for time_ns, _, size_bytes, category in events:
        if time_ns < start:
            before[category] += size_bytes
    return {
        "before_bytes": before,
        "events": [event for event in events if start <= event[0] < end],
    }


def write(one: Recording, small: dict[str, Any], repository: dict[str, str]) -> dict[str, Any]:
    """Write a recording into its file, and return its entry in the index."""
    packed = gzip.compress(json.dumps(small, separators=(",", ":")).encode(), 9, mtime=0)
    write_whole(FOLDER / f"{one.name}.json.gz", packed)
    print(f"{one.name}: {len(packed) / 1e3:.0f} kB")
    told = asdict(one)
    del told["repository"], told["name"]
    return {**repository, **told}


def main() -> None:
    """Write the recordings, the licences and the index."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    for name in REPOSITORIES:
        parser.add_argument(f"--{name}", required=True, help="a clone of its repository")
    folders = vars(parser.parse_args())
    index = {}
    for one in (*RECORDINGS, MEMORY):
        repository = dict(REPOSITORIES[one.repository])
        licence = repository.pop("licence_file")
        text = git_show(folders[one.repository], repository["commit"], licence)
        write_whole(FOLDER / f"LICENSE-{one.repository}", text)
        data = git_show(folders[one.repository], repository["commit"], one.path)
        whole = json.loads(gzip.decompress(data))
        small = cut_memory(whole, MEMORY_MS) if one is MEMORY else cut(whole, one.steps)
        index[one.name] = write(one, small, repository)
    text = json.dumps(index, indent=1, ensure_ascii=False) + "\n"
    write_whole(FOLDER / "sources.json", text)


if __name__ == "__main__":
    main()
