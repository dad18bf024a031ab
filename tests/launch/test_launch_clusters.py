"""Noticing torchrun and SLURM from their variables."""

import json
import re
import shlex

import pytest
from stand_ins import REPOSITORY

from course_utils.launch import build_parser
from course_utils.launch.clusters import Cluster, find_cluster

pytestmark = pytest.mark.process


TORCHRUN = {
    "TORCHELASTIC_RUN_ID": "lesson",
    "WORLD_SIZE": "8",
    "LOCAL_WORLD_SIZE": "4",
    "RANK": "5",
}
SLURM = {
    "SLURM_NTASKS": "6",
    "SLURM_NNODES": "3",
    "SLURM_NTASKS_PER_NODE": "2",
    "SLURM_PROCID": "4",
}


def test_without_their_variables_there_is_no_cluster():
    assert find_cluster({"RANK": "3", "WORLD_SIZE": "4"}) == Cluster()


@pytest.mark.parametrize(
    ("environ", "kind", "nodes", "here", "rank"),
    [(TORCHRUN, "torchrun", 2, 4, 5), (SLURM, "slurm", 3, 2, 4)],
)
def test_a_cluster_is_noticed_from_its_variables(environ, kind, nodes, here, rank):
    cluster = find_cluster(environ)
    assert (cluster.kind, cluster.nodes, cluster.devices_per_node, cluster.rank) == (
        kind,
        nodes,
        here,
        rank,
    )


def test_lightning_notices_torchrun_and_slurm_under_the_same_conditions(monkeypatch):
    from lightning.fabric.plugins.environments import SLURMEnvironment, TorchElasticEnvironment

    for environ, environment in ((TORCHRUN, TorchElasticEnvironment), (SLURM, SLURMEnvironment)):
        assert not environment.detect()
        with monkeypatch.context() as patch:
            for name, value in environ.items():
                patch.setenv(name, value)
            assert environment.detect()
            assert environment().world_size() == int(
                environ.get("WORLD_SIZE", environ.get("SLURM_NTASKS"))
            )
            assert environment().global_rank() == find_cluster(environ).rank


def test_a_shell_inside_of_a_slurm_job_is_no_cluster():
    assert find_cluster({**SLURM, "SLURM_JOB_NAME": "interactive"}) == Cluster()


def test_a_single_tpu_host_is_no_pod():
    assert find_cluster({"TPU_WORKER_HOSTNAMES": "localhost", "TPU_WORKER_ID": "0"}) == Cluster()


@pytest.mark.parametrize(
    "environ",
    [
        {"TORCHELASTIC_RUN_ID": "x"},
        {**TORCHRUN, "WORLD_SIZE": "7"},
        {**SLURM, "SLURM_NTASKS": "seven"},
    ],
)
def test_variables_that_contradict_each_other_are_an_error(environ):
    with pytest.raises(ValueError, match="its variables do not agree"):
        find_cluster(environ)


@pytest.mark.parametrize("starter", ["torchrun", "srun"])
def test_the_lessons_command_for_a_cluster_ends_in_a_line_that_the_launcher_understands(starter):
    cells = json.loads(
        (REPOSITORY / "notebooks" / "03_multi_gpu.ipynb").read_text(encoding="utf-8")
    )["cells"]
    text = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
    command = re.search(rf"^    (\S+=1 )?{starter} --n?nodes=2 (?:.*\\\n)*.*", text, re.MULTILINE)
    words = shlex.split(command[0])
    options = build_parser().parse_args(words[words.index("course_utils.launch") + 1 :])
    assert options.lesson == "air_rnn" and options.resume
    assert command[1] == (
        "TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1 " if starter == "torchrun" else None
    )
