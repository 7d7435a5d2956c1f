"""Forms of the layers that XLA compiles to fast programs, for GPUs and TPUs."""
