"""The scenery of lesson 4: its picture and exercises."""
