"""Tools of the accelerator course: why a GPU is missing, who is faster, and what a job would take.

Each tool is a folder that imports `course_utils` and no other tool, and hands on its public names:
`from course_tools.compare import compare_devices`.
"""
