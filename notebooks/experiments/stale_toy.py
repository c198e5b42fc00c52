"""Stale gradients on one weight, with the loss w**2 / 2: its gradient is the weight itself."""

import numpy as np


def descend(lr, staleness, num_steps=60):
    """Return the weight before the first step and after each; its gradients come late.

    Parameters
    ----------
    lr : float
    staleness : int
        Updates between reading the weight and using its gradient; the first gradients are all
        those of the first weight.
    num_steps : int

    Returns
    -------
    list of float
    """
    weights = [1.0]
    for step in range(num_steps):
        gradient = weights[max(step - staleness, 0)]
        weights.append(weights[-1] - lr * gradient)
    return weights


def average_of_random(lr, num_workers, num_runs=4000, num_steps=60, seed=0):
    """Return the weight of asynchronous workers, averaged over runs, shape (num_steps + 1,).

    Each update comes from a worker drawn at random, so the staleness s has the probability
    (1 - m) m**s with m = 1 - 1 / num_workers. A gradient from before the start is zero.
    """
    late = np.random.default_rng(seed).geometric(1 / num_workers, (num_runs, num_steps)) - 1
    weights = np.ones((num_runs, num_steps + 1))
    for step in range(num_steps):
        read = step - late[:, step]
        gradient = np.where(read < 0, 0, weights[np.arange(num_runs), np.maximum(read, 0)])
        weights[:, step + 1] = weights[:, step] - lr * gradient
    return weights.mean(axis=0)


def with_momentum(lr, momentum, num_steps=60):
    """Return the weight under a momentum, with fresh gradients, shape (num_steps + 1,)."""
    weights, velocity = [1.0], 0
    for _ in range(num_steps):
        velocity = momentum * velocity - lr * weights[-1]
        weights.append(weights[-1] + velocity)
    return np.array(weights)


def largest_rate(staleness):
    """Find the rate above which ``descend`` diverges, by halving."""
    low, high = 0.0, 3.0
    for _ in range(30):
        middle = (low + high) / 2
        tail = np.abs(descend(middle, staleness, num_steps=4000)[-500:]).max()
        low, high = (middle, high) if tail < 2 else (low, middle)
    return low
