# SPDX-License-Identifier: BSD-3-Clause
"""Words of tables and plots, explained where they stand."""

# Each word and its meaning
TERMS = {
    "must": "the value that a release has to reach; MISSED says that it does not",
    "aim": "the value that the product is meant to reach in the end",
    "limit": "the same bytes through the same ports with no protocol at all: copy, CRC, port, CRC, copy (urnic-perf limit)",
    "of limit": "a share of the bytes or messages of limit in the same round; the rest to 100 % is the cost of the protocol",
    "posix": "shared memory of this machine (shm_open): the peer copies into it and out of it, without frames, CRCs or loss, so "
             "it is the fastest that two programs can be here",
    "spread": "the lowest and the highest round",
    "withheld": "no verdict, since the machine was not quiet",
}


def used(texts):
    """The terms that occur in texts, with their meanings, in the order above."""
    words = " ".join(texts).replace(",", " ").replace(":", " ").replace("(", " ").replace(")", " ")
    return {term: meaning for term, meaning in TERMS.items() if f" {term} " in f" {words} "}
