"""What every other part speaks of: plans, settings, statistics, reports. It knows no policy and no backend."""
