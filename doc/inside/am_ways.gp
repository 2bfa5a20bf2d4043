# Each point is the best of four rounds of bench.sh --only am, 30 November 2026 (performance.md).
set terminal pngcairo size 1300,520 font 'sans,11'
set output 'am_ways.png'
set multiplot layout 1,2
set grid
set logscale x 2
set logscale y
set xlabel 'bytes of a write'
set key top left
set format x '%.0f'
set xtics rotate by -45
$gbps_direct << EOD
8 0.521
64 3.962
256 14.33
1024 39.059
4096 83.072
EOD
$gbps_pipelined << EOD
8 0.48
64 3.776
256 13.256
1024 35.004
4096 80.937
8192 69.932
16384 74.146
32768 95.684
65536 84.439
262144 73.186
1048576 68.165
4194304 51.404
EOD
$gbps_tagged << EOD
8 0.28
64 2.237
256 8.735
1024 23.489
4096 54.426
8192 70.833
16384 78.185
32768 77.343
65536 90.957
262144 70.9
1048576 74.339
4194304 49.325
EOD
$gbps_RC_WRITE << EOD
8 0.687
64 5.352
256 16.57
1024 59.775
4096 114.779
8192 109.988
16384 124.784
32768 129.926
65536 65.28
262144 101.762
1048576 103.092
4194304 55.365
EOD
set ylabel 'Gbit/s, a stream'
plot $gbps_direct with linespoints lw 2 pt 7 ps 0.6 title 'direct', $gbps_pipelined with linespoints lw 2 pt 7 ps 0.6 title 'pipelined', $gbps_tagged with linespoints lw 2 pt 7 ps 0.6 title 'tagged', $gbps_RC_WRITE with linespoints lw 2 pt 7 ps 0.6 title 'RC WRITE'
$us_direct << EOD
8 1.044
64 1.028
256 1.06
1024 1.148
4096 1.564
EOD
$us_pipelined << EOD
8 1.052
64 1.052
256 1.084
1024 1.18
4096 1.612
8192 2.2
16384 3.224
32768 5.456
65536 9.504
262144 32.448
1048576 128.256
4194304 628.736
EOD
$us_tagged << EOD
8 1.252
64 1.252
256 1.284
1024 1.388
4096 1.772
8192 2.408
16384 3.464
32768 5.616
65536 10.656
262144 31.424
1048576 105.728
4194304 608.256
EOD
set ylabel 'us, one write at a time, p50'
plot $us_direct with linespoints lw 2 pt 7 ps 0.6 title 'direct', $us_pipelined with linespoints lw 2 pt 7 ps 0.6 title 'pipelined', $us_tagged with linespoints lw 2 pt 7 ps 0.6 title 'tagged'
unset multiplot
