"""Query networks in simulated time: the second backend that executes drop plans."""
