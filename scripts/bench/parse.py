# SPDX-License-Identifier: BSD-3-Clause
"""Numbers from the output of the programs beside urnic: text in, a dictionary out.

Raises ValueError when a number is missing.

Keys: gbps (10^9 bits a second of payload), msg_rate (messages a second), us (microseconds,
half a round trip), pNN (the same, a percentile)."""
import json
import re


def urnic(text):
    """urnic-perf --json."""
    return json.loads(text)


def ucx(text, size):
    """ucx_perftest -v: CSV, a header and a line for each report; the last one counts.

    The MB of ucx_perftest are 2^20 bytes and follow from the size, so only the message rate is taken."""
    rows = [l.split(",") for l in text.splitlines() if "," in l]
    if len(rows) < 2 or "overall_mr" not in rows[0]:
        raise ValueError("no result")
    value = dict(zip(rows[0], (float(v) for v in rows[-1])))
    rank = next(k for k in value if k.endswith("_percentile_lat"))
    return {"msg_rate": value["overall_mr"], "gbps": value["overall_mr"] * size * 8 / 1e9,
            "us": value["overall_lat"], "percentile": value[rank]}


def fi_pingpong(text):
    """fi_pingpong: a table of one line. One message at a time: a rate of half round trips."""
    rows = [l.split() for l in text.splitlines() if l.strip()]
    if len(rows) < 2 or rows[0][-1] != "Mxfers/sec" or len(rows[-1]) != len(rows[0]):
        raise ValueError("no result")
    value = dict(zip(rows[0], rows[-1]))
    us = float(value["usec/xfer"])
    size = suffixed(value["bytes"])
    if us <= 0:
        raise ValueError("no time was measured")
    return {"us": us, "msg_rate": 1e6 / us, "gbps": size * 8 / us / 1e3}


def suffixed(text):
    """fi_pingpong's sizes: 8, 64k, 1m."""
    m = re.fullmatch(r"(\d+(?:\.\d+)?)([kmgKMG]?)", text)
    if not m:
        raise ValueError(f"{text} is no size")
    return int(float(m[1]) * 1024 ** " kmg".index((m[2] or " ").lower()))


def iperf3(text, size):
    """iperf3 -J: the rate at the receiver. size: bytes of each write."""
    value = json.loads(text)
    if "error" in value:
        raise ValueError(value["error"])
    bits = value["end"]["sum_received"]["bits_per_second"]
    return {"gbps": bits / 1e9, "msg_rate": bits / 8 / size,
            "retransmits": value["end"]["sum_sent"].get("retransmits", 0)}


def sockperf(text):
    """sockperf ping-pong: half the round trip, and its percentiles."""
    found = {m[1]: float(m[2]) for m in
             re.finditer(r"percentile\s+([\d.]+)\s*=\s*([\d.]+)", text)}
    mean = re.search(r"Summary: Latency is ([\d.]+) usec", text)
    if not found or not mean:
        raise ValueError("no result")
    return {"us": float(mean[1]), "ranks": {float(k): v for k, v in found.items()}}


def sockperf_throughput(text, size):
    """sockperf throughput: messages a second that were sent."""
    m = re.search(r"Message Rate is (\d+) \[msg/sec\]", text)
    if not m:
        raise ValueError("no result")
    return {"msg_rate": float(m[1]), "gbps": float(m[1]) * size * 8 / 1e9}


def testpmd(text):
    """dpdk-testpmd --stats-period: packets a second through a port, the best of its displays."""
    rates = [int(v) for v in re.findall(r"Rx-pps:\s+(\d+)", text)]
    if not rates or max(rates) == 0:
        raise ValueError("no packets")
    return {"msg_rate": float(max(rates))}


def perftest(text):
    """ib_*_bw and ib_*_lat: a head that begins with #bytes, and below it the row of one size.

    Units of bandwidth depend on an option, so the rate is taken from messages a second."""
    lines = text.splitlines()
    at = next((i for i, l in enumerate(lines) if l.lstrip().startswith("#bytes")), None)
    if at is None:
        raise ValueError("no head of a table")
    # Names have spaces in them: "BW peak[Gb/sec]", "99.9% percentile[usec]".
    names = re.findall(r"#\w+|[\w.%]+(?: (?:peak|average|percentile))?\[[^\]]*\]", lines[at])
    words = next((l.split() for l in lines[at + 1:] if l.strip()), [])
    if len(words) != len(names):
        raise ValueError(f"{len(names)} names and {len(words)} numbers: {' '.join(words)[:100]}")
    value = {n.split("[")[0]: float(w) for n, w in zip(names, words)}
    if "t_typical" in value:
        found = {"us": value["t_typical"]}
    else:
        messages = value["MsgRate"] * 1e6
        found = {"msg_rate": messages, "gbps": messages * value["#bytes"] * 8 / 1e9}
    if not all(v > 0 for v in found.values()):
        raise ValueError(f"no rate or time: {' '.join(words)[:100]}")
    return found


def named(text, *names):
    """Lines of a name and a number, as programs of the bench itself print them."""
    value = {}
    for line in text.splitlines():
        words = line.split()
        if len(words) == 2 and words[0] in names:
            value[words[0]] = float(words[1])
    for name in names:
        if name not in value:
            raise ValueError(f"no {name}")
    return value
