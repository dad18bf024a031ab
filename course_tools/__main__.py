"""List the commands of the course: `python -m course_tools`."""

COMMANDS = """\
python -m course_tools.doctor            why a GPU or TPU is missing here, and what to do
python -m course_tools.estimate MODEL    hours and money on devices that you do not have
python -m course_tools.old_code FILE     what is outdated in a script, a notebook or an error
python -m course_tools.rehearsal FILE    run a script on a GPU that is not there
python -m course_utils.launch            train with Lightning in several processes

Each explains itself with --help. Two more are functions, for your own code:
course_tools.compare.compare_devices and course_tools.timeline.find_bottleneck."""

if __name__ == "__main__":
    print(COMMANDS)
