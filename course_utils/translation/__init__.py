"""The parts of `old_guides`: what old Trainer arguments, devices and calls became."""
