# SPDX-License-Identifier: Apache-2.0
"""Counts a log with Spark: spark-submit count_with_spark.py LOG OUT.hst [SHARDS]

LOG is a path that all executors see, or a URL. A lost executor's shards are counted again by Spark;
on one machine with --master 'local[4,3]': 4 threads, 3 attempts. All nodes need Halfscope. Spark
needs Java: pip install pyspark; apt install openjdk-17-jre-headless
"""

import operator
import sys

try:
    from pyspark.sql import SparkSession
except ImportError:
    sys.exit("Spark is not installed; install it with: pip install pyspark")

import halfscope


def main(spark, log, out, shards=16):
    numbers = spark.sparkContext.parallelize(range(1, shards + 1), shards)
    counts = numbers.map(lambda i: halfscope.count(log, shard=(i, shards))).treeReduce(operator.add)
    counts.save(out)
    print(halfscope.recommend(out))


if __name__ == "__main__":
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    with SparkSession.builder.getOrCreate() as session:
        main(session, *sys.argv[1:3], *map(int, sys.argv[3:]))
