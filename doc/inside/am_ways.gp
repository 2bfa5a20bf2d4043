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
8 0.315
64 3.093
256 10.568
1024 23.754
4096 45.806
EOD
$gbps_pipelined << EOD
8 0.343
64 2.552
256 8.006
1024 23.378
4096 44.391
8192 45.004
16384 47.912
32768 45.878
65536 49.674
262144 46.248
1048576 43.676
4194304 45.187
EOD
$gbps_tagged << EOD
8 0.175
64 1.167
256 4.8
1024 15.699
4096 33.185
8192 38.979
16384 42.831
32768 49.43
65536 45.053
262144 47.115
1048576 45.158
4194304 48.766
EOD
$gbps_RC_WRITE << EOD
8 0.376
64 2.865
256 8.826
1024 24.747
4096 48.076
8192 47.95
16384 46.269
32768 52.834
65536 49.667
262144 50.995
1048576 45.046
4194304 43.844
EOD
set ylabel 'Gbit/s, a stream'
plot $gbps_direct with linespoints lw 2 pt 7 ps 0.6 title 'direct', $gbps_pipelined with linespoints lw 2 pt 7 ps 0.6 title 'pipelined', $gbps_tagged with linespoints lw 2 pt 7 ps 0.6 title 'tagged', $gbps_RC_WRITE with linespoints lw 2 pt 7 ps 0.6 title 'RC WRITE'
$us_direct << EOD
8 1.772
64 2.12
256 2.28
1024 2.488
4096 3.736
EOD
$us_pipelined << EOD
8 2.056
64 2.264
256 2.472
1024 2.616
4096 3.864
8192 4.976
16384 6.608
32768 11.296
65536 17.6
262144 46.208
1048576 177.664
4194304 735.232
EOD
$us_tagged << EOD
8 2.012
64 2.408
256 2.488
1024 2.808
4096 3.704
8192 5.328
16384 7.12
32768 11.872
65536 19.776
262144 47.232
1048576 192
4194304 706.56
EOD
set ylabel 'us, one write at a time, p50'
plot $us_direct with linespoints lw 2 pt 7 ps 0.6 title 'direct', $us_pipelined with linespoints lw 2 pt 7 ps 0.6 title 'pipelined', $us_tagged with linespoints lw 2 pt 7 ps 0.6 title 'tagged'
unset multiplot
