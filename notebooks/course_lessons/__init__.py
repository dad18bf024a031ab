"""The scenery of the lessons, a folder for each: its pictures, its exercises, its scripts."""
