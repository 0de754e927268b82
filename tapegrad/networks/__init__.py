"""Networks as data (`form`), and the backends that evaluate them, one in each other file: each kind of layer
is evaluated in one place of each backend, and targets only build the form."""
