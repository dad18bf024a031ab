"""Scenery of lesson 6: pictures of timings, busy neighbours, and published curves."""
