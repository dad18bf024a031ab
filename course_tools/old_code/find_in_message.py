"""Find what is outdated in the code that the message of an error is about."""

import re
from collections.abc import Iterator
from dataclasses import replace

from course_tools.old_code.find_idioms import LONGEST_TEXT
from course_tools.old_code.find_outdated import find_in_code
from course_tools.old_code.hooks import HOOK_KINDS, hook
from course_tools.old_code.installed import TRAINER, version
from course_tools.old_code.names_in_code import Names
from course_tools.old_code.note import Note
from course_tools.old_code.old_names import TABLES
from course_tools.old_code.parsed_code import Code


def find_in_message(message: str) -> Iterator[Note]:
    """Find what is outdated in the code that the message of an error is about."""
    message = message[:LONGEST_TEXT]
    if refused := re.search(_REFUSED_CALL, message):
        kinds = [hook(kind, refused[1]) for kind in HOOK_KINDS]
        forms = [f"{each.today} in a {each.kind}" for each in kinds if each]
        if forms:
            why = f"{version(TRAINER)}, which is installed here, calls it so."
            yield Note(refused[0], "; ".join(forms), why)
            return
    for pattern, form in TABLES["messages"]:
        if match := re.search(pattern, message):
            text = match.expand(form)
            code = Code(text)
            found = find_in_code(code, Names([code], text))
            notes = {(note.new, note.why): note for note in found}.values()
            yield from (_of_a_file(note) if text.startswith("import ") else note for note in notes)
            break
    for pattern, new, why in TABLES["other_messages"]:
        if re.search(pattern, message):
            yield Note(message[:80], new, why)


_REFUSED_CALL = (
    r"(\w+)\(\) (?:missing \d+ required positional argument"
    r"|takes (?:from )?\d+ .*positional argument"
    r"|got an unexpected keyword argument).*"
)


def _of_a_file(note: Note) -> Note:
    """Return a note on a missing module, which a file may name that is being loaded."""
    if note.new:
        return note
    why = "If no line of yours imports it, a file does that an older version saved: load it with"
    why += " that version, or make it again with today's."
    return replace(note, why=f"{note.why} {why}")
