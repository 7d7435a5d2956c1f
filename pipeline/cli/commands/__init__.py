"""A file per command, imported by its name when the command is asked for; each holds `command`."""
