"""Answers to the exercises of lesson 4."""

CONTEXT = """
from course_lessons.beyond_the_notebook import exercises as ex

guarded = ex.BROKEN.replace("\\n\\nstart()", '\\n\\nif __name__ == "__main__":\\n    start()')
function = ex.BROKEN[ex.BROKEN.index("    def train") : ex.BROKEN.index("    context")]
import textwrap

outside = textwrap.dedent(function).rstrip()
moved = ex.BROKEN.replace(function, "").replace("def start", f"{outside}\\n\\n\\ndef start")
"""

WRONG = {
    "guard": [
        ("my_script = 3", "the text of the script"),
        ("my_script = guarded", "cannot be found"),
        ("my_script = moved", "starts children"),
        ("my_script = guarded.replace('spawn', 'fork')", "does not survive"),
        ("my_script = 'print(\"rank 0 of 2\")'", "when it is only imported"),
        ("my_script = 'print(1)'", "should print a line"),
        ("my_script = ''", "should print a line"),
    ],
    "places": [
        ("my_numbers = 12", "three numbers"),
        ("my_numbers = 12, 128", "there are 2"),
        ("my_numbers = 4, 384, 2", "of all machines"),
        ("my_numbers = 12, 1536, 2", "the ranks share it"),
        ("my_numbers = 12, 512, 2", "All ranks together"),
        ("my_numbers = 12, 128, 6", "starts from 0 on each"),
    ],
}

RIGHT = {
    "guard": [
        "my_script = guarded.replace(function, '').replace('def start', "
        "f'{outside}\\n\\n\\ndef start')",
        "my_script = guarded.replace(function, '').replace('def start', "
        "f'{outside}\\n\\n\\ndef start').replace('spawn', 'forkserver')",
        "my_script = 'print(\"starting\")\\n' + guarded.replace(function, '').replace("
        "'def start', f'{outside}\\n\\n\\ndef start')",
    ],
    "places": ["my_numbers = [3 * 4, 1536 / 12, 6 - 4]"],
}
