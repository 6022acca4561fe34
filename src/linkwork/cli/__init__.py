"""The command line: `linkwork --help`."""
