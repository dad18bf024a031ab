"""The scenery of lesson 4: its pictures, its table of counters, and its exercises."""
