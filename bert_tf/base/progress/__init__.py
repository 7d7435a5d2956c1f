"""What is shown of running work, in words and on terminals."""
