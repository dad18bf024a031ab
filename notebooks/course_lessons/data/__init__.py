"""Data and networks of the lessons: a short series, images, and the networks that learn them."""
