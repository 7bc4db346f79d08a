"""ICU-Sepsis: patients of the clinicians' policy, with its log-probabilities (Choudhary et al. 2024).

The state is one-hot, as in play, and the action is one of 25 combinations. Treatments that clinicians gave often
enough in a state are admissible; the recorded policy is theirs among these. `truth` is the exact return of any
policy, by linear algebra.
"""

from __future__ import annotations

import gymnasium
import icu_sepsis  # noqa: F401  (registers the environment)
import numpy as np

TASK = "Sepsis/ICU-Sepsis-v2"
SEED = 0


def environment():
    """The environment without wrappers."""
    return gymnasium.make(TASK).unwrapped


def record(patients: int, seed: int = SEED) -> dict[str, np.ndarray]:
    """Stays of patients in the layout of the own `.npz` form."""
    ward = environment()
    policy, random = clinicians(ward), np.random.default_rng(seed)
    states, actions, rewards, ends = [], [], [], []
    for _ in range(patients):
        state, _ = ward.reset(seed=int(random.integers(2**31)))
        is_end = False
        while not is_end:
            action = int(random.choice(policy.shape[1], p=policy[state]))
            states.append(state)
            actions.append(action)
            state, reward, is_end, _, _ = ward.step(np.array(divmod(action, 5)))
            rewards.append(reward)
            ends.append(is_end)
    states, actions = np.array(states), np.array(actions)
    return {
        "observations": np.eye(policy.shape[0], dtype=np.float32)[states],
        "actions": actions.astype(np.int64),
        "rewards": np.array(rewards, np.float32),
        "terminals": np.array(ends),
        "timeouts": np.zeros(len(ends), bool),
        "n_actions": np.array(policy.shape[1]),
        "behavior_log_probs": np.log(policy[states, actions]).astype(np.float32),
        "action_mask": masks(ward)[states],
    }


def clinicians(ward) -> np.ndarray:
    """`[states, actions]`: the clinicians' policy among admissible treatments."""
    policy = np.where(masks(ward), ward.expert_policy, 0.0)
    # The ends have no treatment.
    return policy / np.maximum(policy.sum(1, keepdims=True), 1e-12)


def masks(ward) -> np.ndarray:
    """`[states, actions]`: the admissible treatments."""
    allowed = np.zeros((ward.num_states, ward.expert_policy.shape[1]), bool)
    for state, actions in enumerate(ward.dynamics["admissible_actions"]):
        allowed[state, list(actions)] = True
    return allowed


def truth(ward, policy: np.ndarray, discount: float) -> float:
    """The mean return of a policy `[states, actions]`: `d₀ᵀ (I − γ P_π)⁻¹ r_π`, with terminal states left out."""
    transitions, rewards, starts = (ward.dynamics[name] for name in ("tx_mat", "r_mat", "d_0"))
    n = transitions.shape[0] - 3  # The last three states are the ends.
    step = np.einsum("sa,sat->st", policy, transitions)
    gain = np.einsum("sa,sat,sat->s", policy, transitions, rewards)
    values = np.linalg.solve(np.eye(n) - discount * step[:n, :n], gain[:n])
    return float(starts[:n] @ values)
