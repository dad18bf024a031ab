"""The parts of the launcher: what to train, the ranks, the lines between them, and who watches over all."""
