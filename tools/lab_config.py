"""How `make lab` starts JupyterLab: without lines that would frighten or distract a newcomer."""

c = get_config()  # noqa: F821  jupyter_server defines it
c.KernelManager.transport_encryption = "auto"  # else each kernel warns of eavesdropping
c.LabApp.log_level = "WARN"  # it does not follow the server's
# jupyter_server's own value is longer than its interval, of which tornado warns.
c.ServerApp.tornado_settings = {"ws_ping_interval": 30_000, "ws_ping_timeout": 30_000}
