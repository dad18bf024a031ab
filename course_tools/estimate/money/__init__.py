"""Money: prices, what is free, and which device to take."""
