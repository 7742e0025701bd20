"""Tools for those who write methods of their own."""
