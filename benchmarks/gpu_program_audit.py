"""Compiles exported steps for an H100, without one, and prints the cost of a layer there.

    python benchmarks/gpu_exported_step.py export FOLDER --sizes base --layers 2 3 \\
        --kinds pretraining --forms plain fused "fused, no dropout"
    python benchmarks/gpu_program_audit.py FOLDER

The second command needs jax, jaxlib, jax-cuda12-plugin, jax-cuda12-pjrt (of one version) and
nvidia-cuda-nvcc-cu12, but no GPU and no driver: XLA compiles for the description of an H100 below,
without trying which kernel is fastest. Prints per form and length the kernels of a layer (its
passes over memory), the bytes that they read and write, and the memory that its activations take,
as differences between programs of two and three layers. Products count, too.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

from gpu_exported_step import module_text
from xla_programs import main_computation, moved_bytes

# What XLA asks about a GPU: an H100 SXM of 80 GB, by its datasheet and CUDA's device properties.
_H100 = """
gpu_device_info {
  threads_per_block_limit: 1024
  threads_per_warp: 32
  shared_memory_per_block: 49152
  shared_memory_per_core: 233472
  threads_per_core_limit: 2048
  core_count: 132
  fpus_per_core: 128
  block_dim_limit_x: 2147483647
  block_dim_limit_y: 65535
  block_dim_limit_z: 65535
  memory_bandwidth: 3352320000000
  l2_cache_size: 52428800
  clock_rate_ghz: 1.98
  device_memory_size: 84942979072
  shared_memory_per_block_optin: 232448
  cuda_compute_capability { major: 9 }
  registers_per_core_limit: 65536
  registers_per_block_limit: 65536
}
platform_name: "CUDA"
dnn_version_info { major: 9 minor: 10 patch: 2 }
device_description_str: "NVIDIA H100 80GB HBM3"
"""


def compiled_for_h100(file: Path) -> Any:
    """Return the executable of an exported program; it cannot run here."""
    from jax._src.interpreters import mlir
    from jax._src.lib import xla_client
    from jax.experimental import topologies
    from jaxlib.mlir import ir

    described = topologies.get_topology_desc(
        "h100", platform="cuda", topology="1x1x1", target_config=_H100
    )
    (device,) = described.devices
    with mlir.make_ir_context():
        module = ir.Module.parse(module_text(file))
    devices = xla_client.DeviceList((device,))
    return device.client.compile(module, devices, xla_client.CompileOptions())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    options = parser.parse_args()
    os.environ["JAX_SKIP_CUDA_CONSTRAINTS_CHECK"] = "1"  # it looks for a driver
    os.environ["XLA_FLAGS"] = "--xla_gpu_autotune_level=0 --xla_gpu_enable_triton_gemm=false"
    # ptxas, which writes the GPU's instructions.
    tools = [Path(path) / "nvidia" / "cuda_nvcc" / "bin" for path in sys.path]
    os.environ["PATH"] = os.pathsep.join([*map(str, tools), os.environ["PATH"]])
    programs: dict[str, dict[int, tuple[int, int, int]]] = defaultdict(dict)
    for file in sorted(options.folder.glob("* layers.json")):
        facts = json.loads(file.read_text())
        executable = compiled_for_h100(file)
        kernels, moved = moved_bytes(main_computation(executable.hlo_modules()[0].to_string()))
        memory = executable.get_compiled_memory_stats().temp_size_in_bytes
        name = f"{facts['size']}, {facts['work']}, {facts['rows']} rows, {facts['form']}"
        programs[name][facts["layers"]] = (kernels, moved, memory)
    for name, by_layers in programs.items():
        (fewer, least), (more, most) = sorted(by_layers.items())[:2]
        kernels_per_layer, moved_per_layer, memory_per_layer = (
            (high - low) / (more - fewer) for low, high in zip(least, most, strict=True)
        )
        line = {
            "name": name,
            "kernels": kernels_per_layer,
            "moved_gb": round(moved_per_layer / 1e9, 3),
            "memory_gb": round(memory_per_layer / 1e9, 3),
        }
        print(json.dumps(line))


if __name__ == "__main__":
    main()
