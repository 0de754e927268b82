"""Networks as data (`form`), and what evaluates or reads them (`backends`, `words`): each kind of layer is
evaluated in one place of each backend, and targets only build the form."""
