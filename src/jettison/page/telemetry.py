"""The figures of queries sent by OpenTelemetry, where its standard environment variables say so."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import Any

from jettison import __version__, extras
from jettison.page.measures import MEASURES, Measure
from jettison.page.server import Watched

_ENDPOINTS = "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT"


def is_asked_for() -> bool:
    """Whether an endpoint is named, or the exporter for metrics, and the SDK is not switched off."""
    off = os.environ.get("OTEL_SDK_DISABLED", "").lower() == "true"
    exporter = os.environ.get("OTEL_METRICS_EXPORTER", "")
    named = any(os.environ.get(name) for name in _ENDPOINTS) or "otlp" in exporter
    return named and exporter != "none" and not off


def _names_a_service() -> bool:
    """Whether one of the two variables that may do so does; what a program says itself would override the second."""
    attributes = os.environ.get("OTEL_RESOURCE_ATTRIBUTES", "").split(",")
    named = any(one.partition("=")[0].strip() == "service.name" for one in attributes)
    return named or bool(os.environ.get("OTEL_SERVICE_NAME"))


def send(queries: Watched) -> Callable[[], None]:
    """Send all figures at the interval of `OTEL_METRIC_EXPORT_INTERVAL`; call what is returned to end it."""
    extras.require("opentelemetry", where="sending metrics, as OTEL_EXPORTER_OTLP_ENDPOINT asks for")
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
    from opentelemetry.metrics import Observation
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
    from opentelemetry.sdk.resources import Resource

    resource = Resource.create({} if _names_a_service() else {"service.name": "jettison"})
    provider = MeterProvider([PeriodicExportingMetricReader(OTLPMetricExporter())], resource=resource)
    meter = provider.get_meter("jettison", __version__)

    def observed(measure: Measure) -> Callable[[Any], Iterable[Observation]]:
        return lambda _: [Observation(value, labels) for labels, value in measure.values(queries.views())]

    for measure in MEASURES:
        make = meter.create_observable_counter if measure.counts else meter.create_observable_gauge
        make(measure.name, [observed(measure)], unit=measure.unit, description=measure.help)
    return provider.shutdown
