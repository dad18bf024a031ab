"""The scenery of lesson 1: its pictures and exercises."""
