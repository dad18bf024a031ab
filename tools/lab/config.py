"""How `make lab` starts JupyterLab: quietly, and with pictures that suit its dark theme."""

from pathlib import Path

c = get_config()  # noqa: F821  jupyter_server defines it
c.KernelManager.transport_encryption = "auto"  # else each kernel warns of eavesdropping
c.LabApp.log_level = "WARN"  # it does not follow the server's
c.LabApp.custom_css = True
c.ServerApp.tornado_settings = {
    # jupyter_server's own timeout is longer than its interval, of which tornado warns
    "ws_ping_interval": 30_000,
    "ws_ping_timeout": 30_000,
    "static_custom_path": [str(Path(__file__).parent)],  # where custom.css lies
}
