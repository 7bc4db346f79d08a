"""Times exported agents in onnxruntime on one thread, next to d3rlpy's exports of the same sizes.

    pip install d3rlpy torch onnx onnxscript onnxruntime
    python scripts/peers/onnx_speed.py TRANSFORMER REBRAC     # directories of `export format=onnx`

Agents of Hopper: the default Decision Transformer (3 layers of 128, context 5) and ReBRAC (3 x 256).
d3rlpy's graphs do not normalize observations, and its transformer's has no mask.
"""

import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import onnxruntime
import torch

# d3rlpy 2.8 needs PyTorch's older exporter.
export = torch.onnx.export
torch.onnx.export = lambda *args, **options: export(*args, **{**options, "dynamo": False})
import d3rlpy  # noqa: E402


def measure(name, path):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(path), options)
    types = {"tensor(float)": np.float32, "tensor(int64)": np.int64}
    inputs = {
        each.name: np.zeros([n if isinstance(n, int) else 1 for n in each.shape], types[each.type])
        for each in session.get_inputs()
    }
    for _ in range(100):
        session.run(None, inputs)
    started = time.perf_counter()
    for _ in range(2000):
        session.run(None, inputs)
    took = (time.perf_counter() - started) / 2
    print(f"{name}: {path.stat().st_size / 1e6:.2f} MB, {took:.4f} ms")


def main():
    random, n = np.random.default_rng(0), 2000
    ends = (np.arange(n) % 200 == 199).astype(np.float32)
    data = d3rlpy.dataset.MDPDataset(
        random.normal(size=(n, 11)).astype(np.float32),
        random.uniform(-1, 1, (n, 3)).astype(np.float32),
        random.normal(size=n).astype(np.float32), ends,
    )
    layers = d3rlpy.models.VectorEncoderFactory
    transformer = d3rlpy.algos.DecisionTransformerConfig(
        context_size=5, num_layers=3, num_heads=1, max_timestep=1000, activation_type="relu",
        encoder_factory=layers([128], exclude_last_activation=True),
    )
    rebrac = d3rlpy.algos.ReBRACConfig(actor_encoder_factory=layers([256, 256, 256]))
    with tempfile.TemporaryDirectory() as folder:
        for name, config in (("Decision Transformer", transformer), ("ReBRAC", rebrac)):
            algorithm = config.create(device="cpu")
            algorithm.build_with_dataset(data)
            path = Path(folder) / f"{name}.onnx"
            algorithm.save_policy(str(path))
            measure(f"d3rlpy, {name}", path)
    for name, own in zip(("Decision Transformer", "ReBRAC"), sys.argv[1:]):
        measure(f"Overtone, {name}", Path(own) / "agent.onnx")


if __name__ == "__main__":
    main()
