/* A clock of the day that is AFPA_CLOCK_AHEAD seconds ahead of the system's, or behind it (LD_PRELOAD). */
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static long ahead;

__attribute__((constructor)) static void begin(void) {
    const char *seconds = getenv("AFPA_CLOCK_AHEAD");
    ahead = seconds ? atol(seconds) : 0;
}

int clock_gettime(clockid_t clock, struct timespec *to) {
    int failed = (int)syscall(SYS_clock_gettime, clock, to);
    if (!failed && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
        to->tv_sec += ahead;
    return failed;
}

int gettimeofday(struct timeval *restrict to, void *restrict zone) {
    int failed = (int)syscall(SYS_gettimeofday, to, zone);
    if (!failed)
        to->tv_sec += ahead;
    return failed;
}

time_t time(time_t *to) {
    struct timespec at = {0};
    clock_gettime(CLOCK_REALTIME, &at);
    time_t now = at.tv_sec;
    if (to)
        *to = now;
    return now;
}
