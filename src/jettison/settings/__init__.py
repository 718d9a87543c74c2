"""What a drop point can do, one kind a file."""
