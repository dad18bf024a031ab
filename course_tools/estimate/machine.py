"""The machines that could do a job: chips, their number, and what connects them."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from course_tools.estimate.checks import check_positive
from course_tools.estimate.chips import Chip, Link, find_chip, find_link, other_forms

HERE = "this machine"
# "2 x T4", "2xT4", "8*A100"; and behind the name, "T4 x2"
SEVERAL = re.compile(r"\s*(?P<count>\d+)\s*[x*]\s*(?P<chip>\S.*)")
BEHIND = re.compile(r"\s*(?P<chip>\S.*[\s\d])x\s*(?P<count>\d{1,2})\s*")


@dataclass(frozen=True, init=False)
class Machine:
    """One or several of a chip, and what connects them.

    Attributes:
        chip: the chip.
        count: how many work together, each with its own batch.
        link: what connects them, or None where a chip has no link and none was named.
        others: the names of chips that its name may mean too.
    """

    chip: Chip
    count: int
    link: Link | None
    others: tuple[str, ...] = field(compare=False)

    def __init__(self, chip: str | Chip, count: int = 1, link: str | None = None):
        """Find a machine by the names of its parts.

        Args:
            chip: the chip, or its name.
            count: how many of it.
            link: a name such as "Ethernet 10G", or None to take the chip's own.

        Raises:
            ValueError: a name is unknown, or the count is not a positive integer.
        """
        found = find_chip(chip)
        name = link or found.link
        object.__setattr__(self, "chip", found)
        object.__setattr__(self, "count", check_positive("count", count))
        object.__setattr__(self, "link", find_link(name) if name else None)
        others = other_forms(chip) if isinstance(chip, str) else ()
        object.__setattr__(self, "others", others)

    @property
    def name(self) -> str:
        """The chip, with the number of them if they are several."""
        return self.chip.name if self.count == 1 else f"{self.count} x {self.chip.name}"


def machines(
    devices: Sequence[str | Chip | Machine],
    count: int = 1,
    link: str | None = None,
) -> list[Machine]:
    """Return each device once, as a machine; "8 x A100" is eight of them.

    Args:
        devices: names, chips or machines.
        count, link: of the devices that are no `Machine`, and do not say it themselves.

    Raises:
        TypeError: one name or number was passed in place of a list.
        ValueError: a name is unknown, or two unlike chips or machines have one name.
    """
    if isinstance(devices, (str, Chip, Machine)) or not isinstance(devices, Sequence):
        raise TypeError(
            f"devices is a list of names of chips, such as ['T4', 'A100'], but got {devices!r}. "
            f"Pass [{devices!r}] for one."
        )
    check_positive("count", count)
    if link is not None:
        find_link(link)
    found: list[Machine] = []
    for device in devices:
        if not isinstance(device, Machine):
            several = None
            if isinstance(device, str):
                several = SEVERAL.fullmatch(device) or BEHIND.fullmatch(device)
            how_many = int(several["count"]) if several else count
            device = Machine(several["chip"] if several else device, how_many, link)
        if device in found:
            continue
        for known in found:
            if known.chip.name == device.chip.name and known.chip != device.chip:
                raise ValueError(
                    f"two unlike chips have the name {known.chip.name!r}. Give them two names."
                )
            if known.name == device.name:
                raise ValueError(
                    f"{known.name} was asked for twice, with different links. Ask one at a time."
                )
        found.append(device)
    return found
