"""What is in this machine, read from files and driver libraries without starting a device."""
