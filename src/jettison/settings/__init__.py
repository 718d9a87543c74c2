"""What a drop point may do: one kind of setting a file."""
