/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Fibers (fiber.h) by the contexts of POSIX. Invariant: `running` is the innermost fiber that is
 * being resumed, and the stack in use is its stack. The lowest page of a stack is not accessible,
 * so an overflow is a crash instead of damage. Stacks are address space until they are touched.
 * The sanitizers are told of each switch, as they keep state per stack. */
#define _GNU_SOURCE
#include "base/fiber.h"

#include <stdint.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "base/assert.h"
#include "base/bytes.h"
#include "base/map.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
/* For functions that are entered on one stack and left on another. */
#define SWITCHES __attribute__((no_sanitize("thread"), noinline))
#else
#define SWITCHES
#endif

enum { STACK_BYTES = 512 * 1024, KEPT_STACKS = 16 };

struct fiber {
    fiberProc *run;
    void *arg;
    ucontext_t own, resumer;
    char *stack;
    fiber *below; /* the fiber that has resumed this one; NULL: none */
    bool is_running, has_ended;
    void *shadow;               /* of the sanitizer: the state of this stack while suspended */
    const void *resumer_stack;  /* likewise, where the resumer's stack is */
    size_t resumer_stack_bytes; /* its size */
    void *resumer_shadow;
};

static __thread fiber *running; /* other threads have none */
static fiberPointProc *point;
static struct {
    char *stacks[KEPT_STACKS];
    int count;
} kept;

/* ------------------------------------------------------------------ sanitizers */

/* Called before and after each switch, on the stack that is left and on the one that is entered. */
#if defined(__SANITIZE_ADDRESS__)
static void beforeResume(fiber *f) {
    __sanitizer_start_switch_fiber(&f->resumer_shadow, f->stack + MAP_PAGE, STACK_BYTES - MAP_PAGE);
}
static void afterResume(fiber *f) {
    __sanitizer_finish_switch_fiber(f->resumer_shadow, NULL, NULL);
}
static void beforeSuspend(fiber *f) {
    __sanitizer_start_switch_fiber(f->has_ended ? NULL : &f->shadow, f->resumer_stack,
                                   f->resumer_stack_bytes);
}
static void afterSuspend(fiber *f) {
    __sanitizer_finish_switch_fiber(f->shadow, &f->resumer_stack, &f->resumer_stack_bytes);
}
static void initShadow(fiber *f) { (void)f; }
static void freeShadow(fiber *f) { (void)f; }
#elif defined(__SANITIZE_THREAD__)
ALWAYS_INLINE void beforeResume(fiber *f) {
    f->resumer_shadow = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(f->shadow, 0);
}
ALWAYS_INLINE void afterResume(fiber *f) { (void)f; }
ALWAYS_INLINE void beforeSuspend(fiber *f) { __tsan_switch_to_fiber(f->resumer_shadow, 0); }
ALWAYS_INLINE void afterSuspend(fiber *f) { (void)f; }
static void initShadow(fiber *f) { f->shadow = __tsan_create_fiber(0); }
static void freeShadow(fiber *f) { __tsan_destroy_fiber(f->shadow); }
#else
static void beforeResume(fiber *f) { (void)f; }
static void afterResume(fiber *f) { (void)f; }
static void beforeSuspend(fiber *f) { (void)f; }
static void afterSuspend(fiber *f) { (void)f; }
static void initShadow(fiber *f) { (void)f; }
static void freeShadow(fiber *f) { (void)f; }
#endif

/* ------------------------------------------------------------------ stacks */

static char *stackNew(void) {
    if (kept.count) return kept.stacks[--kept.count];
    char *stack = memReserve(STACK_BYTES, MAP_PAGE);
    if (!stack) return NULL;
    if (memReserveOpen(stack + MAP_PAGE, STACK_BYTES - MAP_PAGE)) return stack;
    memReserveFree(stack, STACK_BYTES);
    return NULL;
}

static void stackFree(char *stack) {
    check(stack != NULL);
    if (kept.count < KEPT_STACKS) {
        kept.stacks[kept.count++] = stack;
    } else {
        memReserveFree(stack, STACK_BYTES);
    }
}

/* ------------------------------------------------------------------ switching */

/* The first function on the stack of a fiber. Arguments of a context are ints, so it takes none. */
SWITCHES static void begin(void) {
    fiber *f = running;
    afterSuspend(f);
    f->run(f->arg);
    check(running == f);
    f->has_ended = true;
    beforeSuspend(f);
    /* The context is left for good: its uc_link leads back to the resumer. */
}

/* A function of its own, without variables that a second return of getcontext() could spoil. */
static void makeContext(fiber *f) {
    check(getcontext(&f->own) == 0);
    f->own.uc_stack.ss_sp = f->stack + MAP_PAGE;
    f->own.uc_stack.ss_size = STACK_BYTES - MAP_PAGE;
    f->own.uc_link = &f->resumer;
    makecontext(&f->own, begin, 0);
}

fiber *fiberNew(fiberProc *run, void *arg) {
    char *stack = stackNew();
    if (!stack) return NULL;
    fiber *f = memNew(fiber);
    *f = (fiber){.run = run, .arg = arg, .stack = stack};
    makeContext(f);
    initShadow(f);
    return f;
}

SWITCHES bool fiberResume(fiber *f) {
    check(!f->has_ended);
    check(!f->is_running);
    f->below = running;
    f->is_running = true;
    running = f;
    beforeResume(f);
    check(swapcontext(&f->resumer, &f->own) == 0);
    afterResume(f);
    check(running == f);
    running = f->below;
    f->is_running = false;
    return !f->has_ended;
}

SWITCHES void fiberSuspend(void) {
    fiber *f = running;
    check(f != NULL);
    beforeSuspend(f);
    check(swapcontext(&f->own, &f->resumer) == 0);
    afterSuspend(f);
    check(running == f);
}

void fiberSetPoint(fiberPointProc *proc) { point = proc; }

bool fiberPoint(unsigned elements) {
    if (likely(!running) || !point) return false;
    return point(elements);
}

void fiberFree(fiber *f) {
    check(f->has_ended);
    check(!f->is_running);
    freeShadow(f);
    stackFree(f->stack);
    memFree(f);
}
