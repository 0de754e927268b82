/* There is no clock: it is always 0 o'clock, so that a run can be repeated. */
#ifndef TAPEGRAD_TIME_H
#define TAPEGRAD_TIME_H

typedef long time_t;
typedef long clock_t;
#define CLOCKS_PER_SEC 1000000L
time_t time(time_t *also_there);
clock_t clock(void);

#endif
