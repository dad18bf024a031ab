"""How `make lab` starts JupyterLab: with lesson 0, quietly, and with pictures that suit its dark
theme.
"""

from pathlib import Path

c = get_config()  # noqa: F821  jupyter_server defines it
c.KernelManager.transport_encryption = "auto"  # else each kernel warns of eavesdropping
c.LabApp.log_level = "WARN"  # it does not follow the server's
c.LabApp.custom_css = True
c.JupyterApp.answer_yes = True  # Ctrl+C stops it, without a question that expires after 5 s
# Also in the address that is printed where there is no browser, as on a server or in a container.
c.LabApp.default_url = "/lab/tree/00_start_here.ipynb"
c.ServerApp.tornado_settings = {
    # No pings, which only a network needs: with jupyter_server's usual numbers tornado warns, and
    # with a timeout as short as tornado wants it, jupyter_server cuts every connection.
    "ws_ping_interval": 0,
    "static_custom_path": [str(Path(__file__).parent)],  # where custom.css lies
}
