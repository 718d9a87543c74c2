"""What commands share: what is typed behind their options, and their help."""
