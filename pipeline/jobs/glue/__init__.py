"""The tasks of the GLUE benchmark (Wang et al., 2018), as its files and metrics define them."""
