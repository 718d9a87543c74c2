"""`jettison demo`: an overloaded taxi stream on local Spark, plain and shed."""
