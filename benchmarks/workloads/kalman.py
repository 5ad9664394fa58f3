"""A Kalman filter that stores its means and covariances; gradient of the likelihood by the model."""

import numpy as np

from benchmarks.case import Array, Case

BOUND = 1.5
STEPS = 200


def make_inputs() -> tuple[Array, Array, float, Array]:
    rng = np.random.default_rng(0)
    F = np.eye(4) + 0.1 * np.eye(4, k=2) - 0.05 * np.eye(4, k=-2)
    G = 0.1 * rng.standard_normal((4, 4))
    return F, G @ G.T + 0.01 * np.eye(4), 0.3, rng.standard_normal(STEPS)


def primal(F, Q, r, z):
    n = len(z)
    m = np.zeros((n + 1, 4))
    P = np.zeros((n + 1, 4, 4))
    P[0] = np.eye(4)
    loss = 0.0
    for t in range(n):
        mean = F @ m[t]
        cov = F @ P[t] @ F.T + Q
        s = cov[0, 0] + r
        e = z[t] - mean[0]
        gain = cov[:, 0] / s
        m[t + 1] = mean + gain * e
        P[t + 1] = cov - np.outer(gain, cov[0])
        loss += np.log(s) + e * e / s
    return loss


def by_hand(F: Array, Q: Array, r: float, z: Array) -> tuple[Array, Array, float]:
    n = len(z)
    m = np.zeros((n + 1, 4))
    P = np.zeros((n + 1, 4, 4))
    P[0] = np.eye(4)
    tape = []
    for t in range(n):
        mean = F.dot(m[t])
        cov = F.dot(P[t]).dot(F.T)
        cov += Q
        s = cov[0, 0] + r
        e = z[t] - mean[0]
        gain = cov[:, 0] / s
        m[t + 1] = mean + gain * e
        P[t + 1] = cov - np.outer(gain, cov[0])
        tape.append((cov[0].copy(), s, e, gain))
    F̄, Q̄, r̄ = np.zeros((4, 4)), np.zeros((4, 4)), 0.0
    mean_bar, cov_bar = np.zeros(4), np.zeros((4, 4))
    for t in range(n - 1, -1, -1):
        row, s, e, gain = tape[t]
        gain_bar = mean_bar * e
        gain_bar -= cov_bar.dot(row)
        e_bar = 2.0 * e / s + mean_bar.dot(gain)
        s_bar = 1.0 / s - e * e / (s * s) - gain_bar.dot(gain) / s
        cov_bar[0] -= gain.dot(cov_bar)
        cov_bar[:, 0] += gain_bar / s
        cov_bar[0, 0] += s_bar
        mean_bar[0] -= e_bar
        r̄ += s_bar
        Q̄ += cov_bar
        half = cov_bar.dot(F)
        F̄ += half.dot(P[t].T)
        F̄ += cov_bar.T.dot(F.dot(P[t]))
        F̄ += np.outer(mean_bar, m[t])
        cov_bar = F.T.dot(half)
        mean_bar = F.T.dot(mean_bar)
    return F̄, Q̄, r̄


CASES = [Case(f"Kalman filter {STEPS}", BOUND, make_inputs, primal, by_hand, argnums=(0, 1, 2))]
