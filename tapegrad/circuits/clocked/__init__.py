"""Circuits with latches and one clock: the model, traces of inputs, ready ones, and Verilog through yosys."""
