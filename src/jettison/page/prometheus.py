"""The figures of queries as Prometheus fetches them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from jettison.page.measures import MEASURES
from jettison.page.server import Watched


class _Figures(Collector):
    def __init__(self, queries: Watched) -> None:
        self._queries = queries

    def collect(self) -> Iterator[Metric]:
        views = self._queries.views()
        for measure in MEASURES:
            found = list(measure.values(views))
            labels = list(dict.fromkeys(name for given, _ in found for name in given)) or ["query"]
            family = CounterMetricFamily if measure.counts else GaugeMetricFamily
            metric = family(measure.name, measure.help, labels=labels)
            for given, value in found:
                metric.add_metric([given.get(name, "") for name in labels], value)
            yield metric


def exposition(queries: Watched) -> Callable[[], bytes]:
    """What makes the text that Prometheus reads, each time from the ledgers."""
    registry = CollectorRegistry()
    registry.register(_Figures(queries))
    return lambda: generate_latest(registry)
