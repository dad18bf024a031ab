"""Answers to the exercise of lesson 0."""

CONTEXT = ""

RIGHT = {
    "speed_up": [
        "my_speed_up = lambda load_s, c, times: round((load_s + c) / (load_s + c / times), 1)"
    ]
}

WRONG = {
    "speed_up": [
        (
            "def my_speed_up(load_s, compute_s, times):\n    return times",
            "loading does not become faster",
        ),
        ("my_speed_up = lambda load_s, c, times: load_s + c / times", "seconds it takes"),
        ("my_speed_up = lambda load_s, c, times: (load_s + c) / times", "become 3 times as fast"),
        ("my_speed_up = lambda load_s, c, times: (load_s + c / times) / (load_s + c)", "Turn it"),
    ]
}
