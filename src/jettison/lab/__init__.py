"""The laboratory: reproductions, simulators, benchmarks and the demo. Nothing of the product needs it."""
