"""Element-wise work between the matrix products of a training step, as compiled loops.

TensorFlow's operations pass through memory once each, those on bfloat16 convert every number twice,
and XLA, which would make one pass of them, compiles each new shape for a second. A kernel makes one
pass over numbers of any shape. Numba compiles it once for a machine.
"""
