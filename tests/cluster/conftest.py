"""The program that a test submits to a cluster is no test itself."""

collect_ignore_glob = ["*driver*.py"]
