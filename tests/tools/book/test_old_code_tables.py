from course_tools.old_code.old_names import NAMES
from course_tools.old_code.trainer_arguments import removed_arguments
from tools.book.old_code_tables import tables


def test_the_reference_has_every_old_argument_and_every_old_name():
    text = tables()
    for old in removed_arguments():
        assert f"`{old}`" in text or f"`{old}=" in text or f", {old}=" in text
    assert all(f"`{name}" in text for name in NAMES)


def test_each_row_of_the_reference_has_as_many_cells_as_its_header():
    for line in tables().splitlines():
        if line.startswith("|"):
            cells = line.replace("\\|", "").split("|")[1:-1]
            assert len(cells) in (3, 4) and all(cell.strip() for cell in cells), line
