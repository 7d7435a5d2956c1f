"""The command line: a file a command; options become a config, a config becomes a job."""
