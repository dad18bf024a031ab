"""The devices of this machine, counted by torch and described without starting any."""
