"""tapegrad compiles algorithms into neural networks that run them exactly."""

__version__ = "0.1.0"
