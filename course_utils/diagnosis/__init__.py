"""The parts of the doctor: what is in this machine, what was tried, what it means, and what to do about it."""
