"""Show a widget so that a saved notebook has words in its place."""


def display_widget(widget, text: str) -> None:
    """Show `widget` in a notebook, with this text where the widget itself is not to be had.

    A notebook is saved with the text and without the widget: whoever opens the file, or reads it on a page, sees the
    text until the cell runs again. The text that a widget has of its own lists its arguments, or quotes a progress bar
    as it stood at its start.

    Args:
        widget: of ipywidgets, 7.7.1 or later.
        text: what a reader should see instead.
    """
    from IPython.display import display

    view = {"version_major": 2, "version_minor": 0, "model_id": widget.model_id}
    display({"application/vnd.jupyter.widget-view+json": view, "text/plain": text}, raw=True)
