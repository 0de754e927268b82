"""Parts of the claims about Wei, Chen and Ma that other work is changing."""
