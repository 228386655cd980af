// A limit on threads, as a container has one: pthread_create fails where it is reached. For tests
// linked with fathom_thread_calls, and by thread_calls.c preloaded for whole programs.
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

// Of the threads that are started from now on, the `failing`-th cannot be (0: none is refused for
// that), nor one more than `most` at the same time (below 0: any number).
void limit_threads(int failing, int most);

// How many were refused since then.
int refused_threads(void);

#ifdef __cplusplus
}
#endif
