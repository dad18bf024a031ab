"""Where ranks meet."""

import socket

import pytest
from torch.distributed import TCPStore

from course_utils.launch.rendezvous import open_rendezvous


def test_the_port_is_taken_from_the_moment_it_is_known():
    store, variables = open_rendezvous()
    port = int(variables["MASTER_PORT"])
    with pytest.raises(OSError, match="in use"), socket.create_server(("127.0.0.1", port)):
        pass
    store.set("said", "by one")
    other = TCPStore(variables["MASTER_ADDR"], port, is_master=False)
    assert other.get("said") == b"by one"


def test_without_a_network_it_fails_at_once(monkeypatch):
    def unreachable(*_, **__):
        raise OSError(101, "Network is unreachable")

    monkeypatch.setattr(socket, "create_connection", unreachable)
    with pytest.raises(ConnectionError, match=r"unreachable.*loopback interface on"):
        open_rendezvous()
