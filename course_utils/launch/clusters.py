"""Notice what starts the processes of a training: nobody yet, torchrun, or SLURM."""

from collections.abc import Mapping
from dataclasses import dataclass

from course_utils.launch.messages import LaunchError


@dataclass(frozen=True)
class Cluster:
    """Who starts the processes, and which of them this one is."""

    # "none" (this launcher starts them itself), "torchrun" or "slurm" (which started every rank)
    kind: str = "none"
    nodes: int = 1  # machines that take part
    # processes on each machine; None where the launcher decides
    devices_per_node: int | None = None
    rank: int = 0  # the number of this process among all of them
    found: str = ""  # the variable that shows it, and its value


def find_cluster(environ: Mapping[str, str]) -> Cluster:
    """Return the cluster whose variables are set in `environ`, under the conditions under which
    Lightning notices it.

    Raises:
        LaunchError: the variables contradict each other.
    """
    try:
        if "TORCHELASTIC_RUN_ID" in environ:
            run = f"TORCHELASTIC_RUN_ID={environ['TORCHELASTIC_RUN_ID']}"
            ranks, here = int(environ["WORLD_SIZE"]), int(environ["LOCAL_WORLD_SIZE"])
            cluster = Cluster("torchrun", ranks // here, here, int(environ["RANK"]), run)
        # A shell inside of an allocation has the variables too, but srun did not start this
        # process.
        elif "SLURM_NTASKS" in environ and environ.get("SLURM_JOB_NAME") not in (
            "bash",
            "interactive",
        ):
            ranks, nodes = int(environ["SLURM_NTASKS"]), int(environ.get("SLURM_NNODES", 1))
            here = int(environ.get("SLURM_NTASKS_PER_NODE", ranks // nodes))
            cluster = Cluster(
                "slurm", nodes, here, int(environ["SLURM_PROCID"]), f"SLURM_NTASKS={ranks}"
            )
        else:
            return Cluster()
        if here * cluster.nodes != ranks:
            raise ValueError(
                f"{cluster.found}: {ranks} ranks are not {cluster.nodes} machines times {here}"
            )
    except (KeyError, ValueError) as error:
        why = "this process looks as if torchrun or SLURM had started it, but its variables do not agree"
        advice = "Start it as the help of your cluster says, or unset those variables."
        raise LaunchError(f"{why}: {error!r}. {advice}") from error
    return cluster
