"""The scenery of lesson 5: its pictures, its table of counters, and its exercises."""
