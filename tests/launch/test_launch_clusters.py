"""Noticing torchrun and SLURM from their variables."""

import shlex

import pytest

from course_utils.launch import build_parser
from course_utils.launch.clusters import NEW_STORE, Cluster, cluster_command, find_cluster

TORCHRUN = {"TORCHELASTIC_RUN_ID": "lesson", "WORLD_SIZE": "8", "LOCAL_WORLD_SIZE": "4", "RANK": "5"}
SLURM = {"SLURM_NTASKS": "6", "SLURM_NNODES": "3", "SLURM_NTASKS_PER_NODE": "2", "SLURM_PROCID": "4"}


def test_without_their_variables_there_is_no_cluster():
    assert find_cluster({"RANK": "3", "WORLD_SIZE": "4"}) == Cluster()


@pytest.mark.parametrize(
    ("environ", "kind", "nodes", "here", "rank"),
    [(TORCHRUN, "torchrun", 2, 4, 5), (SLURM, "slurm", 3, 2, 4)],
)
def test_a_cluster_is_noticed_from_its_variables(environ, kind, nodes, here, rank):
    cluster = find_cluster(environ)
    assert (cluster.kind, cluster.nodes, cluster.devices_per_node, cluster.rank) == (kind, nodes, here, rank)


def test_lightning_notices_torchrun_and_slurm_under_the_same_conditions(monkeypatch):
    from lightning.fabric.plugins.environments import SLURMEnvironment, TorchElasticEnvironment

    for environ, environment in ((TORCHRUN, TorchElasticEnvironment), (SLURM, SLURMEnvironment)):
        assert not environment.detect()
        with monkeypatch.context() as patch:
            for name, value in environ.items():
                patch.setenv(name, value)
            assert environment.detect()
            assert environment().world_size() == int(environ.get("WORLD_SIZE", environ.get("SLURM_NTASKS")))
            assert environment().global_rank() == find_cluster(environ).rank


def test_a_shell_inside_of_a_slurm_job_is_no_cluster():
    assert find_cluster({**SLURM, "SLURM_JOB_NAME": "interactive"}) == Cluster()


def test_a_single_tpu_host_is_no_pod():
    assert find_cluster({"TPU_WORKER_HOSTNAMES": "localhost", "TPU_WORKER_ID": "0"}) == Cluster()


@pytest.mark.parametrize(
    "environ",
    [{"TORCHELASTIC_RUN_ID": "x"}, {**TORCHRUN, "WORLD_SIZE": "7"}, {**SLURM, "SLURM_NTASKS": "seven"}],
)
def test_variables_that_contradict_each_other_are_an_error(environ):
    with pytest.raises(ValueError, match="its variables do not agree"):
        find_cluster(environ)


@pytest.mark.parametrize("kind", ["torchrun", "slurm"])
def test_the_command_for_a_cluster_ends_in_a_line_that_the_launcher_understands(kind):
    command = cluster_command(kind, "--lesson air_rnn --epochs 3", nodes=4, devices=2)
    words = shlex.split(command)
    assert "4" in "".join(words[:3]) and "2" in "".join(words[:4])
    options = build_parser().parse_args(words[words.index("course_utils.launch") + 1 :])
    assert options.lesson == "air_rnn" and options.epochs == 3


def test_there_is_no_command_for_an_unknown_cluster():
    with pytest.raises(ValueError, match="a command for 'kubernetes' was requested"):
        cluster_command("kubernetes", "")


def test_the_command_for_torchrun_asks_for_a_store_that_forgets_the_ranks_before_a_restart():
    assert cluster_command("torchrun", "--lesson air_rnn").startswith(f"{NEW_STORE} torchrun ")
