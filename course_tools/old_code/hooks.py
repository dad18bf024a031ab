"""The methods that the installed Lightning calls on classes of a program, and with what."""

import inspect
from dataclasses import dataclass
from functools import cache
from typing import Any

from course_tools.old_code.installed import TRAINER, resolve, version

HOOK_KINDS = ("LightningModule", "Callback", "LightningDataModule")
_HOOKS_OF_MODULES = (
    *("optimizer_step", "optimizer_zero_grad", "lr_scheduler_step", "backward"),
    *("configure_gradient_clipping", "configure_optimizers"),
)
# Arguments of hooks of Lightning 1 that no hook has today.
OLD_ARGUMENTS = ("optimizer_idx", "on_tpu", "using_native_amp", "using_lbfgs", "opt_idx")


@dataclass(frozen=True)
class Hook:
    """A method that Lightning calls on a module, a callback or a data module.

    Attributes:
        kind: "LightningModule", "Callback" or "LightningDataModule".
        name: of the method.
        passed: the arguments that it is always called with.
        today: how it is written today, such as "def on_fit_end(self)".
        is_open: whether it takes any further arguments.
    """

    kind: str
    name: str
    passed: tuple[str, ...]
    today: str
    is_open: bool

    def refuses(self, required: list[str], accepted: int) -> str:
        """Return why Lightning's call fails on a method, or "" if it does not.

        Args:
            required: the method's arguments without a default, but for self.
            accepted: how many arguments it takes, with and without a default.
        """
        old = [name for name in required if name in OLD_ARGUMENTS and name not in self.passed]
        if not old and (self.is_open or len(required) <= len(self.passed) <= accepted):
            return ""
        with_what = f"with ({', '.join(self.passed)})" if self.passed else "without arguments"
        why = f"{version(TRAINER)}, which is installed here, calls it {with_what}: TypeError."
        if "dataloader_idx=0" in self.today and len(required) == len(self.passed) + 1:
            why += " dataloader_idx is passed only where there are several loaders."
        return why


@cache
def _called_by_lightning(owner: Any) -> frozenset[str]:
    """Return the names of the methods that Lightning calls on a class, and its user does not."""
    if not inspect.isclass(owner):  # no Lightning is installed
        return frozenset()
    parts = [each for each in owner.__mro__ if each.__name__.endswith(("Hooks", "Callback"))]
    names = {name for each in parts for name in vars(each) if not name.startswith("_")}
    return frozenset({*names, *_HOOKS_OF_MODULES} if parts else ())


@cache
def hook(kind: str, name: str) -> Hook | None:
    """Return a method that the installed Lightning calls on a class of this kind, or None."""
    owner = resolve(f"lightning.pytorch.{kind}")
    function = getattr(owner, name, None)
    if name not in _called_by_lightning(owner) or not inspect.isfunction(function):
        return None
    parameters = list(inspect.signature(function).parameters.values())
    if not parameters or parameters[0].name != "self":
        return None
    given = parameters[1:]
    variable = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    plain = [each for each in given if each.kind not in variable]
    is_open = len(plain) < len(given)
    if is_open and not plain:
        return None  # `training_step(*args, **kwargs)` is whatever the user makes of it
    # It is passed where there are several loaders, and has a default for this reason.
    sometimes = [
        each for each in plain if each.name == "dataloader_idx" and each.default is not each.empty
    ]
    texts = [each.name if each not in sometimes else f"{each.name}=0" for each in plain]
    return Hook(
        kind=kind,
        name=name,
        passed=tuple(each.name for each in plain if each not in sometimes),
        today=f"def {name}({', '.join(['self', *texts])})",
        is_open=is_open,
    )
