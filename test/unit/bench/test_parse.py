# SPDX-License-Identifier: BSD-3-Clause
"""Numbers that parse.py reads from recorded output of each program. usage: test_parse.py MODULES"""
import os
import sys
import unittest

sys.path.insert(0, sys.argv.pop(1))
import parse # pylint: disable=wrong-import-position

DATA = os.path.join(os.environ["URNIC_TEST_DATA"], "bench")


def sample(name):
    with open(os.path.join(DATA, name), encoding="utf-8") as f:
        return f.read()


class Parse(unittest.TestCase):
    def test_ucx_takes_the_last_line_and_all_of_the_run(self):
        r = parse.ucx(sample("ucx_tag_bw.txt"), 65536)
        self.assertEqual(r["msg_rate"], 26447)
        # UCX has MB/s of 2^20 bytes: 1652.96 of them.
        self.assertAlmostEqual(r["gbps"], 1652.96 * 2**20 * 8 / 1e9, places=1)
        self.assertEqual(r["us"], 37.811)

    def test_ucx_percentile_of_any_rank(self):
        r = parse.ucx(sample("ucx_tag_lat.txt"), 8)
        self.assertEqual(r["percentile"], 6186.644)

    def test_fi_pingpong(self):
        r = parse.fi_pingpong(sample("fi_pingpong.txt"))
        self.assertEqual(r["us"], 67.72)
        self.assertAlmostEqual(r["gbps"], 967.76e6 * 8 / 1e9, places=2)

    def test_fi_pingpong_sizes(self):
        for text, value in (("8", 8), ("64k", 65536), ("1m", 1048576), ("1.5k", 1536)):
            self.assertEqual(parse.suffixed(text), value)
        self.assertRaises(ValueError, parse.suffixed, "many")

    def test_iperf3_takes_what_the_receiver_got(self):
        r = parse.iperf3(sample("iperf3.json"), 65536)
        self.assertAlmostEqual(r["gbps"], 4.594, places=3)
        self.assertAlmostEqual(r["msg_rate"] * 65536 * 8 / 1e9, r["gbps"], places=6)
        self.assertEqual(r["retransmits"], 4)
        self.assertRaisesRegex(ValueError, "refused", parse.iperf3,
                               '{"error": "unable to connect: Connection refused"}', 1)

    def test_sockperf(self):
        r = parse.sockperf(sample("sockperf_ping_pong.txt"))
        self.assertEqual(r["us"], 85.053)
        self.assertEqual(r["ranks"][50], 17.3)
        self.assertEqual(r["ranks"][99.9], 4746.847)
        self.assertEqual(parse.sockperf_throughput(sample("sockperf_throughput.txt"), 64)
                         ["msg_rate"], 396712)

    def test_testpmd_takes_the_best_display(self):
        # The first displays are of the start, and show nothing yet.
        self.assertEqual(parse.testpmd(sample("testpmd.txt"))["msg_rate"], 5137745)
        self.assertRaises(ValueError, parse.testpmd, "Rx-pps:            0")

    def test_perftest(self):
        r = parse.perftest(sample("perftest_bw.txt"))
        self.assertEqual(r["msg_rate"], 12772)
        self.assertAlmostEqual(r["gbps"], 6.70, places=2)
        # Units of bandwidth do not matter.
        in_bytes = sample("perftest_bw.txt").replace("Gb/sec", "MB/sec").replace("6.70", "798.25")
        self.assertEqual(parse.perftest(in_bytes), r)
        self.assertEqual(parse.perftest(sample("perftest_lat.txt")), {"us": 14.56})

    def test_perftest_without_a_row(self):
        text = sample("perftest_bw.txt")
        head = text[:text.index("MsgRate[Mpps]") + len("MsgRate[Mpps]")]
        self.assertRaisesRegex(ValueError, "5 names and 0 numbers", parse.perftest, head)
        self.assertRaisesRegex(ValueError, "5 names and 3 numbers: Completion with error", parse.perftest,
                               head + "\nCompletion with error\n")
        self.assertRaisesRegex(ValueError, "no rate", parse.perftest, text.replace("0.012772", "0.000000"))

    def test_names_and_numbers(self):
        self.assertEqual(parse.named("a warning\nreg_us 1.5\ndereg_us 2\n", "reg_us", "dereg_us"), {"reg_us": 1.5, "dereg_us": 2})
        self.assertRaisesRegex(ValueError, "no dereg_us", parse.named, "reg_us 1.5\n", "reg_us", "dereg_us")
        self.assertRaises(ValueError, parse.named, "reg_us many\n", "reg_us")

    def test_what_is_no_result_is_said_to_be_none(self):
        for function, more in ((parse.ucx, (8,)), (parse.fi_pingpong, ()), (parse.iperf3, (8,)),
                               (parse.sockperf, ()), (parse.sockperf_throughput, (8,)),
                               (parse.testpmd, ()), (parse.urnic, ()), (parse.perftest, ()),
                               (parse.named, ("us",))):
            for text in ("", "usage: what?\n", "a,b\n", "0 0 0\n1 1 1\n"):
                with self.subTest(function=function.__name__, text=text):
                    self.assertRaises(ValueError, function, text, *more)


if __name__ == "__main__":
    unittest.main()
