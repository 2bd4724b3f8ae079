/* Time, as the operating system tells it. */
#ifndef MICA_HOST_CLOCK_H
#define MICA_HOST_CLOCK_H

double clock_seconds(void);     /* since some moment; never goes back */
double clock_cpu_seconds(void); /* that this process has had on processors, all of its threads */

#endif
