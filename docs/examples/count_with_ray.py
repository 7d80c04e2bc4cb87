# SPDX-License-Identifier: Apache-2.0
"""Counts a log on a Ray cluster: python count_with_ray.py LOG OUT.hst [SHARDS]

LOG is a path that all nodes see, or a URL. A lost worker's shards are counted again by Ray. All
nodes need Halfscope and Ray: pip install ray
"""

import sys

try:
    import ray
except ImportError:
    sys.exit("Ray is not installed; install it with: pip install ray")

import halfscope


@ray.remote(max_retries=3)
def count(log, shard):
    return halfscope.count(log, shard=shard)


@ray.remote(max_retries=3)
def join(*counts):
    return halfscope.Counts.merged(counts)


def main(log, out, shards=16):
    waiting = [count.remote(log, (i, shards)) for i in range(1, shards + 1)]
    while len(waiting) > 1:
        waiting = [join.remote(*waiting[i:i + 2]) for i in range(0, len(waiting), 2)]
    ray.get(waiting[0]).save(out)
    print(halfscope.recommend(out))


if __name__ == "__main__":
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    ray.init()
    main(*sys.argv[1:3], *map(int, sys.argv[3:]))
