"""The suites that come along, as TOML files."""
