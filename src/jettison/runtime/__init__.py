"""The loop of one running query, and what lies beside its checkpoint: plans, ledger, state, owner."""
