"""Source sifters: one drop threshold per region of the data space, configured for many standing range queries.

What producers run is in `jettison.source`, which needs numpy alone.

References
----------
.. [1] B. Gedik, K.-L. Wu, P. S. Yu: Efficient Construction of Compact Shedding Filters for Data Stream Processing.
   ICDE 2007.
"""
