"""What scripts/golden_images.py writes."""
