"""The files of scripts/golden_images.py."""
