"""The command line: options become a config, a config becomes a job."""
