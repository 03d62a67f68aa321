"""What scripts/golden.py writes: fixtures, and what Pillow and torchvision make of them."""
