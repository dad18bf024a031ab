"""Scenery of lesson 5: pictures of timings, busy neighbours, and published curves."""
