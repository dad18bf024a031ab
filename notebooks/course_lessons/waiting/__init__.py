"""Scenery of lesson 7: queues to watch, photographs to decode, and what torch.compile gained."""
