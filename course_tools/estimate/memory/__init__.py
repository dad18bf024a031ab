"""Memory: what a step holds, and whether it fits."""
