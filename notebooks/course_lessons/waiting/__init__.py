"""Scenery of lesson 6: queues to watch, photographs to decode, and what torch.compile gained."""
