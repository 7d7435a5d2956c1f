"""Set before anything imports TensorFlow, Keras or Beam, as the command line does."""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("GRPC_VERBOSITY", "ERROR")
os.environ.setdefault("KERAS_BACKEND", "tensorflow")
