"""Photographs that load slowly, what torch.compile gained, and exercises of lesson 7."""
