"""What a row will cost, learned while it runs: sketches, their synchronisation, and what to drop by them."""
