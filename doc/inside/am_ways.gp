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
8 0.425
64 3.321
256 11.659
1024 28.74
4032 65.82
EOD
$gbps_pipelined << EOD
8 0.43
64 3.297
256 11.705
1024 28.763
4032 65.935
8192 46.162
16384 53.687
32768 57.565
65536 59.138
262144 58.978
1048576 57.665
4194304 55.364
EOD
$gbps_tagged << EOD
8 0.259
64 2.047
256 7.675
1024 19.061
4032 37.325
8192 44.72
16384 52.214
32768 56.614
65536 58.77
262144 60.761
1048576 59.132
4194304 59.558
EOD
$gbps_RC_WRITE << EOD
8 0.614
64 3.197
256 9.69
1024 30.076
4032 59.324
8192 60.471
16384 60.133
32768 58.867
65536 64.743
262144 61.431
1048576 54.517
4194304 55.361
EOD
set ylabel 'Gbit/s, a stream'
plot $gbps_direct with linespoints lw 2 pt 7 ps 0.6 title 'direct', $gbps_pipelined with linespoints lw 2 pt 7 ps 0.6 title 'pipelined', $gbps_tagged with linespoints lw 2 pt 7 ps 0.6 title 'tagged', $gbps_RC_WRITE with linespoints lw 2 pt 7 ps 0.6 title 'RC WRITE'
$us_direct << EOD
8 1.788
64 1.812
256 1.932
1024 2.136
4032 2.84
EOD
$us_pipelined << EOD
8 1.756
64 1.78
256 1.908
1024 2.152
4032 2.824
8192 4.432
16384 6.512
32768 9.696
65536 16.832
262144 40.32
1048576 155.136
4194304 591.872
EOD
$us_tagged << EOD
8 1.924
64 1.956
256 2.072
1024 2.344
4032 3.304
8192 4.592
16384 6.64
32768 9.824
65536 16.224
262144 39.04
1048576 153.088
4194304 571.392
EOD
set ylabel 'us, one write at a time, p50'
plot $us_direct with linespoints lw 2 pt 7 ps 0.6 title 'direct', $us_pipelined with linespoints lw 2 pt 7 ps 0.6 title 'pipelined', $us_tagged with linespoints lw 2 pt 7 ps 0.6 title 'tagged'
unset multiplot
