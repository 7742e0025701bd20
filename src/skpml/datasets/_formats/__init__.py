"""Readers and writers, one module a file format; each knows only its own format."""
