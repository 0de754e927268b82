"""The ledger of claims: every numbered statement of the four papers as a function that can fail."""
