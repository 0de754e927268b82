"""Runs told in tokens: what every token of a record must say, and what a language model makes of them."""
