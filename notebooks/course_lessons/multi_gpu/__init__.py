"""The scenery of lesson 3: its pictures and exercises."""
