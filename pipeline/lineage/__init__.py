"""What artifacts were made from: a walk along their manifests, and its formats."""
