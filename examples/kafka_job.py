"""Readings from your own Kafka broker, averaged by sensor and minute under a latency bound; submit it as it is.

    spark-submit --packages org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0 --py-files jettison.zip \\
        examples/kafka_job.py --broker HOST:9092 --topic readings --checkpoint s3a://bucket/readings --out s3a://bucket/means

Where Maven Central has no spark-token-provider-kafka-0-10_2.13 of that version, the one of 4.0.0 takes its place; add

    --exclude-packages org.apache.spark:spark-token-provider-kafka-0-10_2.13 \\
        --jars spark-token-provider-kafka-0-10_2.13-4.0.0.jar

A record's value is JSON: {"sensor": "a", "time": "2026-01-01T00:00:00", "value": 20.5}. With `--format delta` the answers
go to a Delta table; add its package and the two settings that its own documentation names.
"""

from __future__ import annotations

import argparse

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import jettison as jt

SCHEMA = "sensor string, time timestamp, value double"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("broker", "topic", "checkpoint", "out"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--latency", default="10 seconds")
    parser.add_argument("--format", default="parquet", help="parquet, delta or any other sink with append mode")
    parser.add_argument("--drain", action="store_true", help="take what has arrived, and end")
    asked = parser.parse_args()

    spark = SparkSession.builder.appName("readings").getOrCreate()
    topic = {"kafka.bootstrap.servers": asked.broker, "subscribe": asked.topic, "startingOffsets": "earliest"}
    records = spark.readStream.format("kafka").options(**topic).load()

    shedder = jt.Shedder(latency=asked.latency, checkpoint=asked.checkpoint)
    kept = shedder.guard(records, row_id=["partition", "offset"], arrival="timestamp", name="readings")

    reading = F.from_json(F.col("value").cast("string"), SCHEMA).alias("reading")
    means = (
        kept.select("jt_weight", reading)
        .select("jt_weight", "reading.*")
        .withWatermark("time", "1 minute")
        .groupBy(F.window("time", "1 minute"), "sensor")
        .agg(jt.avg("value", window="window").alias("mean"), jt.count(window="window").alias("readings"))
    )
    writer = means.writeStream.outputMode("append").format(asked.format).option("path", asked.out)
    with shedder:
        shedder.start(writer.trigger(availableNow=True) if asked.drain else writer).awaitTermination()
        print(shedder.status())


if __name__ == "__main__":
    main()
