"""The scenery of lesson 0: its pictures and exercises."""
