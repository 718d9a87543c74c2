"""The Spark backend: the only package of the running query that imports pyspark; settling and the laboratory do too."""
