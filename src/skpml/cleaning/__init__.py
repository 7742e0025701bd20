"""Cleaning of a labelled file: which tags are doubtful, and what to do about them."""
