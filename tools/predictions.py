"""Which cells of a lesson settle a prediction: nobody should see their output before the question.

The book folds these outputs, and the slides show them with a key of their own.
"""

from nbformat import NotebookNode


def settling_cells(cells: list[NotebookNode]) -> list[NotebookNode]:
    """Return the cells of code between a text with a prediction and the text that follows it."""
    found, asked = [], False
    for cell in cells:
        if cell.cell_type == "markdown":
            asked = "**Predict.**" in cell.source
            continue
        own_work = "exercise" in cell.metadata.get("tags", []) or "progress()" in cell.source
        if asked and not own_work:
            found.append(cell)
    return found
