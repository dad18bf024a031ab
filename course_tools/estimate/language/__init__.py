"""Language models, by their shapes: memory, time and money of fine-tuning and of answering."""
