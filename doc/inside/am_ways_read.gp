# Each point is the best of four rounds of bench.sh --only am, 30 November 2026 (performance.md).
set terminal pngcairo size 1300,520 font 'sans,11'
set output 'am_ways_read.png'
set multiplot layout 1,2
set grid
set logscale x 2
set logscale y
set xlabel 'bytes of a read'
set key top left
set format x '%.0f'
set xtics rotate by -45
$gbps_direct << EOD
8 0.354
64 2.876
256 10.33
1024 32.053
4096 69.217
EOD
$gbps_pipelined << EOD
8 0.334
64 2.614
256 10.018
1024 30.709
4096 66.777
8192 69.927
16384 76.109
32768 73.861
65536 80.103
262144 65.422
1048576 52.982
4194304 33.89
EOD
$gbps_tagged << EOD
8 0.056
64 0.57
256 2.663
1024 5.794
4096 22.027
8192 37.998
16384 68.602
32768 75.291
65536 84.448
262144 69.776
1048576 72.897
4194304 37.983
EOD
$gbps_RC_READ << EOD
8 0.383
64 3.075
256 10.748
1024 33.625
4096 82.173
8192 96.014
16384 102.914
32768 88.184
65536 104.547
262144 94.35
1048576 83.666
4194304 34.024
EOD
set ylabel 'Gbit/s, a stream'
plot $gbps_direct with linespoints lw 2 pt 7 ps 0.6 title 'direct', $gbps_pipelined with linespoints lw 2 pt 7 ps 0.6 title 'pipelined', $gbps_tagged with linespoints lw 2 pt 7 ps 0.6 title 'tagged', $gbps_RC_READ with linespoints lw 2 pt 7 ps 0.6 title 'RC READ'
$us_direct << EOD
8 1.022
64 1.028
256 1.068
1024 1.164
4096 1.564
EOD
$us_pipelined << EOD
8 1.044
64 1.052
256 1.084
1024 1.188
4096 1.508
8192 2.2
16384 3.72
32768 6.096
65536 10.656
262144 38.016
1048576 123.648
4194304 1060.86
EOD
$us_tagged << EOD
8 1.188
64 1.204
256 1.22
1024 1.308
4096 1.62
8192 2.232
16384 3.512
32768 5.584
65536 10.08
262144 28.096
1048576 117.504
4194304 731.136
EOD
set ylabel 'us, one read at a time, p50'
plot $us_direct with linespoints lw 2 pt 7 ps 0.6 title 'direct', $us_pipelined with linespoints lw 2 pt 7 ps 0.6 title 'pipelined', $us_tagged with linespoints lw 2 pt 7 ps 0.6 title 'tagged'
unset multiplot
