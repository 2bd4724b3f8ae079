/* How far apart two processors are: the time that a cache line takes from one to the other. */
#ifndef MICA_BENCH_HOP_H
#define MICA_BENCH_HOP_H

/* Nanoseconds of a hop between the first two processors that this program may use, whose numbers it gives. Below 0 if
 * it has fewer, or the system does not let it choose. */
double bench_hop(int processor[2]);

/* Prints it. Returns what a program should end with. */
int bench_hop_print(void);

#endif
