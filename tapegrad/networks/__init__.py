"""Networks as data (`form`), and what evaluates them (`backends`): each kind of layer is evaluated in one
place of each backend, and targets only build the form."""
