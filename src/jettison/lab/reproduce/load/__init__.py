"""Load-aware shedding (Rivetti, Anceaume, Busnel, Querzoni, Sericola, 2016): its experiments and its claims."""
