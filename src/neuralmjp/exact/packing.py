"""Parameters as one vector for an optimiser, and back."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .model import Model, Parameters


class Packing:
    """Which numbers of `Parameters` are free, in a fixed order: rates, emission, initial law.

    Works on NumPy arrays without touching JAX, and on traced arrays inside compiled functions.
    """

    def __init__(self, model: Model, template: Parameters):
        emission = model.emission.learned(template.emission)
        if model.emission.by_em_alone:
            emission = {name: np.zeros_like(free) for name, free in emission.items()}
        learned = Parameters(
            rates=np.ones(len(template.rates), dtype=bool),
            emission=emission,
            initial=(np.arange(len(template.initial)) > 0) & (model.initial == "free"),
        )
        leaves, self._structure = jax.tree.flatten(template)
        self._shapes = [np.shape(leaf) for leaf in leaves]
        self._full = _joined(leaves)
        self.free = np.flatnonzero(_joined(jax.tree.leaves(learned)))
        # The rates come first and are all free.
        self.rates = np.arange(len(template.rates))

    def vector(self, parameters: Parameters) -> Float[np.ndarray, "free"]:
        """The free numbers of `parameters`."""
        return _joined(jax.tree.leaves(parameters))[self.free]

    def parameters(self, vector: Float[Array, "free"] | Float[np.ndarray, "free"]) -> Parameters:
        """Parameters with these free numbers."""
        if isinstance(vector, np.ndarray):
            full = self._full.copy()
            full[self.free] = vector
        else:
            full = jnp.asarray(self._full).at[self.free].set(vector)
        leaves, start = [], 0
        for shape in self._shapes:
            size = int(np.prod(shape))
            leaves.append(full[start : start + size].reshape(shape))
            start += size
        return jax.tree.unflatten(self._structure, leaves)


def _joined(leaves: list) -> np.ndarray:
    return np.concatenate([np.asarray(leaf, dtype=np.float64).ravel() for leaf in leaves])
