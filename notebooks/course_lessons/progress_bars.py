"""Progress bars and other widgets, with text in their place in a notebook without a kernel."""

from collections.abc import Callable
from typing import Any


def open_bar(total: int | None, unit: str, **options: Any) -> Any:
    """Open a bar of tqdm, with its options: a widget in a notebook and text in a terminal.

    In a saved notebook its description (`desc`), or else its length and unit, takes its place.

    Args:
        total: how many units there are to do; None when that is not known.
        unit: of what, in the singular, such as "epoch".
        **options: for tqdm.
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


def epoch_bar(epochs: int) -> Callable[[int, float], None]:
    """Return a function of an epoch's number and loss that shows one bar over all epochs."""
    bar = open_bar(epochs, "epoch", mininterval=0.2)
    return lambda epoch, loss: show_epoch(bar, epoch, loss)


def show_epoch(bar: Any, epoch: int, loss: float) -> None:
    """Move a bar of `open_bar` to the end of an epoch, and close it after the last one."""
    bar.set_postfix_str(f"loss {loss:.4f}", refresh=False)
    bar.update(epoch - bar.n)
    if epoch == bar.total:
        bar.close()


def display_widget(widget: Any, text: str) -> None:
    """Show a widget in a notebook, with `text` where the file is read without a kernel.

    A notebook is saved without its widgets. A widget's own text would list its arguments, or
    quote a progress bar as it stood at its start.
    """
    from IPython.display import display

    view = {"version_major": 2, "version_minor": 0, "model_id": widget.model_id}
    display({"application/vnd.jupyter.widget-view+json": view, "text/plain": text}, raw=True)
