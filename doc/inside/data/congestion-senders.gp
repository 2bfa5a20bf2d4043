set terminal pngcairo size 1300,520 font 'sans,11'
set output 'congestion-senders.png'
set multiplot layout 1,2
set grid
set xlabel 'senders'
set logscale x 2
set xrange [1.8:18]
$of0 << EOD
2 1.0000 100.4
4 0.9992 173.5
8 0.9988 195.1
16 0.9997 130.6
EOD
$of1 << EOD
2 0.9997 16.7
4 1.0000 30.2
8 0.9996 40.9
16 0.9993 48.7
EOD
$of2 << EOD
2 1.0000 78.6
4 1.0000 222.8
8 1.0000 501.6
16 0.9331 493.9
EOD
$of3 << EOD
2 1.0000 113.2
4 0.9989 186.0
8 0.9988 195.1
16 0.9999 132.1
EOD
$of4 << EOD
2 0.9610 52.9
4 0.9796 53.6
8 0.9943 55.0
16 0.9982 58.1
EOD
$of5 << EOD
2 1.0000 115.8
4 0.9812 213.7
8 0.9464 420.8
16 0.9794 528.3
EOD
set ylabel 'fairness (Jain)'
set key bottom left
set yrange [0.9:1.005]
plot $of0 using 1:2 with linespoints lw 2 pt 7 ps 0.7 dt 1 title 'DCQCN', $of1 using 1:2 with linespoints lw 2 pt 7 ps 0.7 dt 1 title 'delay limit 50us', $of2 using 1:2 with linespoints lw 2 pt 7 ps 0.7 dt 1 title 'neither', $of3 using 1:2 with linespoints lw 2 pt 7 ps 0.7 dt 2 title 'messages, DCQCN', $of4 using 1:2 with linespoints lw 2 pt 7 ps 0.7 dt 2 title 'messages, delay limit 50us', $of5 using 1:2 with linespoints lw 2 pt 7 ps 0.7 dt 2 title 'messages, neither'
set ylabel 'kB that wait, on average'
set key top left
set logscale y
set yrange [10:2000]
plot $of0 using 1:3 with linespoints lw 2 pt 7 ps 0.7 dt 1 title 'DCQCN', $of1 using 1:3 with linespoints lw 2 pt 7 ps 0.7 dt 1 title 'delay limit 50us', $of2 using 1:3 with linespoints lw 2 pt 7 ps 0.7 dt 1 title 'neither', $of3 using 1:3 with linespoints lw 2 pt 7 ps 0.7 dt 2 title 'messages, DCQCN', $of4 using 1:3 with linespoints lw 2 pt 7 ps 0.7 dt 2 title 'messages, delay limit 50us', $of5 using 1:3 with linespoints lw 2 pt 7 ps 0.7 dt 2 title 'messages, neither'
unset multiplot
