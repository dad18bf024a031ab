"""Where ranks meet."""

import socket

import pytest
from torch.distributed import TCPStore, rendezvous

from course_utils.launch.rendezvous import open_rendezvous


def test_the_port_is_taken_from_the_moment_it_is_known():
    store, variables = open_rendezvous()
    port = int(variables["MASTER_PORT"])
    with pytest.raises(OSError, match="in use"), socket.create_server(("127.0.0.1", port)):
        pass
    store.set("said", "by one")
    other = TCPStore(variables["MASTER_ADDR"], port, is_master=False)
    assert other.get("said") == b"by one" and port >= 1024  # no port of the system


def test_ranks_take_the_store_that_is_there(monkeypatch):
    store, variables = open_rendezvous()
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    found, rank, ranks = next(rendezvous("env://", 0, 2))  # rank 0 would open one of its own
    found.set("said", "by rank 0")
    assert (rank, ranks) == (0, 2) and store.num_keys() > 0
