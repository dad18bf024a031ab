"""The place where ranks of one machine find each other."""

from torch.distributed import TCPStore

HOST = "127.0.0.1"


def open_rendezvous() -> tuple[TCPStore, dict[str, str]]:
    """Open a store for ranks on this machine, and return it with the variables that lead to it.

    The store listens before anybody knows its port, so no other program can take the port between
    the choice and the start of the ranks. It must live as long as they do. torchrun does the same:
    `TORCHELASTIC_USE_AGENT_STORE` tells the ranks that the store is there already.
    """
    store = TCPStore(HOST, 0, is_master=True, wait_for_workers=False)
    variables = {
        "MASTER_ADDR": HOST,
        "MASTER_PORT": str(store.port),
        "TORCHELASTIC_USE_AGENT_STORE": "True",
        "TORCHELASTIC_RESTART_COUNT": "0",
    }
    return store, variables
