"""A progress bar that is a widget in a notebook and text in a terminal, and that a saved notebook does not misquote."""


def open_bar(total: int | None, unit: str, **options):
    """Open a bar of tqdm.

    A notebook is saved with what a bar said when it opened, "0%", and without the widget that went on from there. So
    the text beside the widget names the bar and no progress.

    Args:
        total: how many units there are to do; None when that is not known.
        unit: of what, in the singular, such as "epoch"; a `desc` among the options takes its place in the text.
        **options: for tqdm.

    Returns:
        The open bar: `update` and `close` it.
    """
    from tqdm.auto import tqdm
    from tqdm.notebook import tqdm_notebook

    if not issubclass(tqdm, tqdm_notebook):
        return tqdm(total=total, unit=unit, **options)
    from IPython.display import display

    bar = tqdm(total=total, unit=unit, display=False, **options)
    view = {"version_major": 2, "version_minor": 0, "model_id": bar.container.model_id}
    amount = f"{total} {unit}{'' if total == 1 else 's'}"
    text = f"[progress bar: {options.get('desc') or amount}]"
    display({"application/vnd.jupyter.widget-view+json": view, "text/plain": text}, raw=True)
    bar.displayed = True
    return bar
