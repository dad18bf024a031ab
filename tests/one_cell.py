"""Run one notebook cell in a real kernel, and look at what it showed."""

import nbclient
import nbformat

VIEW = "application/vnd.jupyter.widget-view+json"


def run_cell(source: str) -> tuple[dict, dict[str, dict]]:
    """Run one cell; return the first thing it showed, and the state of every widget that it made,
    by its name.
    """
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source)])
    nbclient.NotebookClient(notebook, timeout=60, kernel_name="python3").execute()
    state = notebook.metadata.widgets["application/vnd.jupyter.widget-state+json"]["state"]
    return notebook.cells[0].outputs[0].data, {
        name: model["state"] for name, model in state.items()
    }
