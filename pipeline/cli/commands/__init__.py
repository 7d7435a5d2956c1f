"""A file with `command` per command, imported when it is asked for; `jobs` describes the others."""
