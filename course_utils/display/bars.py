"""A progress bar that is a widget in a notebook and text in a terminal."""

from course_utils.display.widget_view import display_widget


def open_bar(total: int | None, unit: str, **options):
    """Open a bar of tqdm.

    In a saved notebook its description, or else its length, takes its place.

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
    bar = tqdm(total=total, unit=unit, display=False, **options)
    amount = f"{total} {unit}{'' if total == 1 else 's'}"
    display_widget(bar.container, f"[progress bar: {options.get('desc') or amount}]")
    bar.displayed = True
    return bar
