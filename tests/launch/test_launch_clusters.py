"""Noticing torchrun, SLURM and TPU pods from their variables."""

import os
import shlex
import subprocess
import sys

import pytest

from course_utils.launch import build_parser
from course_utils.launch.clusters import NEW_STORE, Cluster, cluster_command, find_cluster, restart_trouble

TORCHRUN = {"TORCHELASTIC_RUN_ID": "lesson", "WORLD_SIZE": "8", "LOCAL_WORLD_SIZE": "4", "RANK": "5"}
SLURM = {"SLURM_NTASKS": "6", "SLURM_NNODES": "3", "SLURM_NTASKS_PER_NODE": "2", "SLURM_PROCID": "4"}
POD = {"TPU_WORKER_ID": "1", "TPU_WORKER_HOSTNAMES": "10.0.0.1,10.0.0.2"}


def test_without_their_variables_there_is_no_cluster():
    assert find_cluster({"RANK": "3", "WORLD_SIZE": "4"}) == Cluster()
    assert not Cluster().starts_the_ranks


@pytest.mark.parametrize(
    ("environ", "kind", "nodes", "here", "rank"),
    [(TORCHRUN, "torchrun", 2, 4, 5), (SLURM, "slurm", 3, 2, 4), (POD, "tpu pod", 2, None, 1)],
)
def test_a_cluster_is_noticed_from_its_variables(environ, kind, nodes, here, rank):
    cluster = find_cluster(environ)
    assert (cluster.kind, cluster.nodes, cluster.devices_per_node, cluster.rank) == (kind, nodes, here, rank)
    assert cluster.starts_the_ranks == (kind != "tpu pod")


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


@pytest.mark.parametrize("kind", ["torchrun", "slurm", "tpu pod"])
def test_the_command_for_a_cluster_ends_in_a_line_that_the_launcher_understands(kind):
    command = cluster_command(kind, "--lesson air_rnn --epochs 3", nodes=4, devices=2)
    words = shlex.split(command)
    if kind == "tpu pod":
        words = shlex.split(words[-1].partition("=")[2])
    else:
        assert "4" in "".join(words[:3]) and "2" in "".join(words[:4])
    options = build_parser().parse_args(words[words.index("course_utils.launch") + 1 :])
    assert options.lesson == "air_rnn" and options.epochs == 3


def test_there_is_no_command_for_an_unknown_cluster():
    with pytest.raises(ValueError, match="a command for 'kubernetes' was requested"):
        cluster_command("kubernetes", "")


RESTARTS = {**TORCHRUN, "TORCHELASTIC_MAX_RESTARTS": "3", "TORCHELASTIC_USE_AGENT_STORE": "True"}


def test_a_torchrun_that_restarts_ranks_with_an_old_store_is_noticed():
    assert f"{NEW_STORE} torchrun" in restart_trouble(RESTARTS)
    assert cluster_command("torchrun", "--lesson air_rnn").startswith(f"{NEW_STORE} torchrun ")


@pytest.mark.parametrize(
    "change",
    [{"TORCHELASTIC_MAX_RESTARTS": "0"}, {"TORCHELASTIC_USE_AGENT_STORE": "False"}, {"WORLD_SIZE": "1"}],
)
def test_no_restart_a_new_store_or_a_single_rank_is_no_trouble(change):
    assert restart_trouble({**RESTARTS, **change}) == "" and restart_trouble({}) == ""


def test_under_torchrun_itself_the_launcher_says_so_once(tmp_path):
    (tmp_path / "file").touch()
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node=2", "--max-restarts=1"]
    command += ["--rdzv-backend=c10d", "--rdzv-endpoint=localhost:0", "-m", "course_utils.launch", "--accelerator=cpu"]
    command += ["--lesson=air_rnn", f"--out={tmp_path / 'file'}"]  # refused before anything is trained
    run = subprocess.run(command, env={**os.environ, "OMP_NUM_THREADS": "1"}, capture_output=True, text=True)
    assert "cannot be used" in run.stderr
    starts = run.stdout.count("process 0, 1 machines")
    assert starts >= 1 and run.stdout.count("torchrun keeps the addresses") == starts
