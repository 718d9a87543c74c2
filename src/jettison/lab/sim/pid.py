"""The baseline: the rate estimator of Spark's DStreams, a PID controller on the processing rate."""

from __future__ import annotations

from dataclasses import dataclass

from jettison.core.stats import Stats
from jettison.lab.sim.regulation import RateLimit


@dataclass
class PIDRateEstimator:
    """Rows per second that the next batch may ingest, as `PIDRateEstimator` of Spark's DStreams computes it.

    The first batch sets the rate to its processing rate; batches without rows change nothing.

    Parameters
    ----------
    batch_interval_s
        Length of a DStream batch.
    proportional, integral, derivative, min_rate
        Spark's defaults for `spark.streaming.backpressure.pid.*`.

    References
    ----------
    `org.apache.spark.streaming.scheduler.rate.PIDRateEstimator`, Apache Spark.

    Examples
    --------
    >>> pid = PIDRateEstimator(batch_interval_s=1.0)
    >>> pid.compute(1.0, elements=1000, processing_s=2.0, scheduling_s=0.0), pid.compute(2.0, 1000, 2.0, 1.0)
    (500.0, 400.0)
    """

    batch_interval_s: float
    proportional: float = 1.0
    integral: float = 0.2
    derivative: float = 0.0
    min_rate: float = 100.0
    latest_time_s: float = -1.0
    latest_rate: float = -1.0
    latest_error: float = -1.0

    def compute(self, time_s: float, elements: int, processing_s: float, scheduling_s: float) -> float | None:
        """The new rate after a batch, or `None` where Spark leaves the old one standing."""
        if not (time_s > self.latest_time_s and elements > 0 and processing_s > 0):
            return None
        processing_rate = elements / processing_s
        if self.latest_rate < 0:
            self.latest_time_s, self.latest_rate, self.latest_error = time_s, processing_rate, 0.0
            return processing_rate
        error = self.latest_rate - processing_rate
        historical_error = scheduling_s * processing_rate / self.batch_interval_s
        d_error = (error - self.latest_error) / (time_s - self.latest_time_s)
        correction = self.proportional * error + self.integral * historical_error + self.derivative * d_error
        self.latest_rate = max(self.latest_rate - correction, self.min_rate)
        self.latest_time_s, self.latest_error = time_s, error
        return self.latest_rate


class PIDShedder:
    """`PIDRateEstimator` as a regulator of the plant: what exceeds its rate is dropped, not delayed.

    Notes
    -----
    Departure from Spark, in the baseline's favour: excess rows are dropped, so that they do not queue up in the
    source, and the first batch is already limited only by what waits. Scheduling delay is how much later than one
    batch interval after the previous trigger a batch starts.
    """

    def __init__(self, batch_interval_s: float) -> None:
        self._pid = PIDRateEstimator(batch_interval_s)
        self._limit = RateLimit(float("inf"))
        self._started_s: float | None = None

    def initial(self) -> RateLimit:
        """No limit: DStreams start without one unless `initialRate` is set."""
        return self._limit

    def planned(self, version: int, from_s: float) -> None:
        """Does nothing: a rate limit is in force as soon as it is set."""

    def forecast(self, now_s: float, *, running: bool = True, produced: tuple[float, float] | None = None) -> RateLimit:
        """The estimator changes its rate only with a batch."""
        return self._limit

    def idle(self, now_s: float) -> RateLimit:
        """The estimator hears nothing of idle time: its rate stands."""
        self._started_s = None
        return self._limit

    def step(self, stats: Stats) -> RateLimit:
        due_s = stats.started_s if self._started_s is None else self._started_s + self._pid.batch_interval_s
        self._started_s = stats.started_s
        delay_s = max(0.0, stats.started_s - due_s)
        rate = self._pid.compute(stats.committed_s, stats.kept, stats.duration_s, delay_s)
        if rate is not None:
            self._limit = RateLimit(rate)
        return self._limit
