"""When to shed and how much: the controller, which is pure."""
