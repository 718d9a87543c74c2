"""Source sifters: one drop threshold per region of the data space, configured for many standing range queries.

Numpy is all that this package needs, so that producers can use it where nothing else is installed.

References
----------
.. [1] B. Gedik, K.-L. Wu, P. S. Yu: Efficient Construction of Compact Shedding Filters for Data Stream Processing.
   ICDE 2007.
"""
