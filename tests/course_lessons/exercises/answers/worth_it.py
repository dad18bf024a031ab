"""Answers to the exercises of lesson 6."""

CONTEXT = ""

CHOICE = """
def my_choice(offers, epochs, deadline_hours):
    hours = {{name: epochs * epoch_s / 3600 for name, (epoch_s, price) in offers.items()}}
    in_time = [name for name in offers if hours[name] <= deadline_hours]
    return {best}
"""

CHEAPEST = "min(in_time, key=lambda name: hours[name] * offers[name][1], default=None)"

RIGHT = {
    "rent": [CHOICE.format(best=CHEAPEST)],
    "speed_up": ["my_claim = ['C', 2]"],
    "limits": [
        "my_limits = dict(tiny='launches', add='memory', product='arithmetic', attention='memory', more='x')"
    ],
}

WRONG = {
    "rent": [
        (
            CHOICE.format(best="min(in_time, key=lambda name: offers[name][1], default=None)"),
            "price of an hour",
        ),
        (
            CHOICE.format(best="min(in_time, key=lambda name: hours[name], default=None)"),
            "Ten epochs take the laptop",
        ),
        (CHOICE.format(best="'laptop'"), "take the laptop 135 hours"),
        (
            CHOICE.format(
                best="min(in_time or offers, key=lambda name: hours[name] * offers[name][1])"
            ),
            "Say so with None",
        ),
        *(
            (
                CHOICE.format(best=f"{CHEAPEST} if in_time else {none}"),
                f"Say so with None. Your function {says}",
            )
            for none, says in (
                ("'None'", "says 'None'"),
                ("max([])", "raises ValueError"),
                ("in_time[0]", "raises Index"),
            )
        ),
        (CHOICE.format(best=f"({CHEAPEST}, 0.0)"), "the name of one device alone"),
        (
            CHOICE.format(best=f"print({CHEAPEST})"),
            "Your function says None, as one without `return` does.",
        ),
        ("my_choice = lambda offers, epochs: 'large'", "but yours takes"),
        ("my_choice = 'large'", "This should be a function"),
    ],
    "speed_up": [
        ("my_claim = ('A', 6.0)", "compares fp32 with bf16"),
        ("my_claim = ('B', 20.0)", "batch 1 with batch 256"),
        ("my_claim = ('D', 8.0)", "that are skipped"),
        ("my_claim = ('E', 2.0)", "no E"),
        ("my_claim = ('C', 0.5)", "is not that ratio"),
        ("my_claim = ('C', 'two')", "a number"),
        ("my_claim = 2.0", "a pair"),
        ("my_claim = ('C',)", "its length is 1"),
    ],
    "limits": [
        ("my_limits = {'tiny': 'memory'}", "the largest is not memory"),
        (
            "my_limits = {'tiny': 'launches', 'add': 'memory', 'product': 'memory', 'attention': 'memory'}",
            "For `product`",
        ),
        (
            "my_limits = {'tiny': 'launches', 'add': 'memory', 'product': 'arithmetic'}",
            "`attention` is not in",
        ),
        ("my_limits = {'tiny': 'overhead'}", "not by overhead"),
        ("my_limits = ['launches']", "a dictionary"),
    ],
}
