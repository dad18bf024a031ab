"""Scenery of lesson 7: photographs that load slowly, and what torch.compile gained."""
