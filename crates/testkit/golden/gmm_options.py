"""Writes the golden files of the mixture heads' options: `gmm_*_{learned,fixed,state,state_learned}.safetensors`.

    python gmm_options.py FOLDER

Double precision, NumPy alone. Losses and gradients are written out by hand from the formulas, and
every gradient is compared with central differences before anything is written.

One affine layer a group: means `tanh(W x + b)`, with `std=state` raw deviations, with
`weights=learned` logits of the weights. `density(z) = sum_g pi_g Normal(z; mu_g, sigma_g)`, with
`sigma = softplus(raw)` or a constant. On bins (`gmm_head_`) the logits are `ln(density(b_j) + 1e-5)`
and the loss is their mean cross-entropy; as a likelihood (`gmm_mle_`) it is the mean over rows of
`-ln(density(z) + 1e-10)`, added up over the numbers of an action.
"""

import json
import struct
import sys
from pathlib import Path

import numpy as np


class Head:
    """A mixture head: its parameters by name, and how they are used."""

    def __init__(self, seed, d_model, dimensions, components, weights, std, fixed=None):
        random = np.random.default_rng(seed)
        self.shape = (dimensions, components)
        self.fixed = fixed
        self.parameters = {}
        groups = ["means"] + ["std"] * (std == "state") + ["weights"] * (weights == "learned")
        for group in groups:
            n = dimensions * components
            self.parameters[f"{group}_weight"] = random.normal(0, 0.6, (n, d_model))
            self.parameters[f"{group}_bias"] = random.normal(-1.5 * (group == "std"), 0.3, n)
        if std == "shared":
            self.parameters["raw_std"] = random.normal(-1.5, 0.3, dimensions * components)
        # What f32 can hold, so that single precision has the same head.
        for name, value in self.parameters.items():
            self.parameters[name] = value.astype(np.float32).astype(np.float64)

    def affine(self, x, group):
        values = x @ self.parameters[f"{group}_weight"].T + self.parameters[f"{group}_bias"]
        return values.reshape(len(x), *self.shape)

    def mixtures(self, x):
        """Means, deviations and weights, each `[rows, dimensions, components]`."""
        means = np.tanh(self.affine(x, "means"))
        if self.fixed is not None:
            stds = np.full_like(means, self.fixed)
        elif "raw_std" in self.parameters:
            raw = self.parameters["raw_std"].reshape(1, *self.shape)
            stds = np.broadcast_to(np.log1p(np.exp(raw)), means.shape)
        else:
            stds = np.log1p(np.exp(self.affine(x, "std")))
        weights = np.full_like(means, 1 / self.shape[1])
        if "weights_weight" in self.parameters:
            powers = np.exp(self.affine(x, "weights"))
            weights = powers / powers.sum(2, keepdims=True)
        return means, stds, weights

    def gradients(self, x, points, by_density):
        """Of a loss whose derivative by `density(points)`, `[rows, dimensions, points]`, is given."""
        means, stds, weights = self.mixtures(x)
        # [rows, dimensions, points, components]
        away = (points[..., None] - means[:, :, None]) / stds[:, :, None]
        normal = np.exp(-away**2 / 2) / (stds[:, :, None] * np.sqrt(2 * np.pi))
        part = weights[:, :, None] * normal * by_density[..., None]
        by_means = (part * away / stds[:, :, None]).sum(2)
        by_stds = (part * (away**2 - 1) / stds[:, :, None]).sum(2)
        by_weights = (normal * by_density[..., None]).sum(2)
        flat = lambda array: array.reshape(len(x), -1)
        by_raw = by_stds * (1 - np.exp(-stds))  # softplus'(s) = 1 - e^-softplus(s)
        groups = {"means": flat(by_means * (1 - means**2))}
        if "std_weight" in self.parameters:
            groups["std"] = flat(by_raw)
        if "weights_weight" in self.parameters:
            centred = by_weights - (weights * by_weights).sum(2, keepdims=True)
            groups["weights"] = flat(weights * centred)
        found = {"x": np.zeros_like(x)}
        for group, by_outputs in groups.items():
            found[f"{group}_weight"] = by_outputs.T @ x
            found[f"{group}_bias"] = by_outputs.sum(0)
            found["x"] += by_outputs @ self.parameters[f"{group}_weight"]
        if "raw_std" in self.parameters:
            found["raw_std"] = by_raw.sum(0).reshape(-1)
        return found

    def density(self, x, points):
        """`[rows, dimensions, points]` of points of the same shape."""
        means, stds, weights = self.mixtures(x)
        away = (points[..., None] - means[:, :, None]) / stds[:, :, None]
        normal = np.exp(-away**2 / 2) / (stds[:, :, None] * np.sqrt(2 * np.pi))
        return (weights[:, :, None] * normal).sum(3)


def on_bins(head, x, y, m):
    """Values and gradients of the head on `m` bins."""
    centres = -1 + (2 * np.arange(m) + 1) / m
    points = np.broadcast_to(centres, (len(x), 1, m))
    density = head.density(x, points)
    logits = np.log(density[:, 0] + 1e-5)
    total = np.log(np.exp(logits).sum(1))
    loss = (total - logits[np.arange(len(x)), y]).mean()
    by_logits = np.exp(logits - total[:, None])
    by_logits[np.arange(len(x)), y] -= 1
    by_density = by_logits[:, None] / len(x) / (density + 1e-5)
    return {"logits": logits, "ce": loss}, head.gradients(x, points, by_density)


def on_numbers(head, x, z):
    """Values and gradients of the likelihood head."""
    points = z[..., None]
    density = head.density(x, points)
    loss = -np.log(density + 1e-10).sum((1, 2)).mean()
    by_density = -1 / (density + 1e-10) / len(x)
    return {"pdf_at_z": density[..., 0], "nll": loss}, head.gradients(x, points, by_density)


def check(head, x, loss, gradients):
    """Central differences agree with the gradients."""
    for name, gradient in gradients.items():
        at = x if name == "x" else head.parameters[name]
        differences = np.zeros_like(at)
        for place in np.ndindex(at.shape):
            kept = at[place]
            at[place] = kept + 1e-6
            above = loss()
            at[place] = kept - 1e-6
            differences[place] = (above - loss()) / 2e-6
            at[place] = kept
        off = np.abs(differences - gradient).max() / np.abs(gradient).max()
        assert off < 1e-7, f"{name}: {off}"


def write(path, arrays):
    """A safetensors file."""
    header, data = {}, b""
    for name, array in sorted(arrays.items()):
        array = np.atleast_1d(np.ascontiguousarray(array))
        kind = {"f": "F64", "i": "I64"}[array.dtype.kind]
        end = len(data) + array.nbytes
        header[name] = {"dtype": kind, "shape": array.shape, "data_offsets": [len(data), end]}
        data += array.tobytes()
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def main(folder):
    rows, d_model, m, components = 5, 7, 11, 3
    options = [
        ("learned", "learned", "shared", None),
        ("fixed", "equal", "fixed", 0.25),
        ("state", "equal", "state", None),
        ("state_learned", "learned", "state", None),
    ]
    for index, (name, weights, std, fixed) in enumerate(options):
        for kind in ["head", "mle"]:
            random = np.random.default_rng(100 + index)
            dimensions = 2 if kind == "mle" and name == "state_learned" else 1
            head = Head(index, d_model, dimensions, components, weights, std, fixed)
            x = random.normal(0, 1, (rows, d_model)).astype(np.float32).astype(np.float64)
            y = random.integers(0, m, rows)
            z = random.uniform(-1, 1, (rows, dimensions)).astype(np.float32).astype(np.float64)
            found = (lambda: on_bins(head, x, y, m)) if kind == "head" else (lambda: on_numbers(head, x, z))
            values, gradients = found()
            loss = "ce" if kind == "head" else "nll"
            check(head, x, lambda: found()[0][loss], gradients)
            # As in the released head on bins, whose means have no prefix.
            theirs = lambda key: key.removeprefix("means_") if kind == "head" else key
            arrays = {"x": x, **values, **({"y": y} if kind == "head" else {"z": z})}
            arrays |= {theirs(key): value for key, value in head.parameters.items()}
            arrays |= {f"grad_{theirs(key)}": value for key, value in gradients.items()}
            if fixed is not None:
                arrays["fixed_std"] = np.array(fixed)
            size = f"n{d_model}_m{m}" if kind == "head" else f"n{d_model}"
            write(folder / f"gmm_{kind}_{size}_G{components}_{name}.safetensors", arrays)
            print(kind, name, values[loss])


if __name__ == "__main__":
    main(Path(sys.argv[1]))
