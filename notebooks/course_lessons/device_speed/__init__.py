"""Pictures of timings, busy neighbours, published curves and exercises of lesson 6."""
