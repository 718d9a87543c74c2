"""Window-Aware Load Shedding for Aggregation Queries over Data Streams (VLDB 2006)."""
