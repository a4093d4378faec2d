/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Bounds of running scripts that Lua does not have: time and the C stack.
 *
 * Time: nothing is counted while a script runs. An alarm of the main thread, set by the first
 * script and again by each poll, makes the interpreter call a hook before its next instruction, and
 * functions in C poll at their next step. So polls are some ms apart even if single instructions
 * are slow. The handler only sets the hook (which Lua allows at any time) and numbers.
 *
 * Stack: Lua bounds the number of nested calls of C, but knows nothing of the size of their frames
 * and of the stack. Functions that call back look at the address of their frame. Main thread
 * only. */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <sys/auxv.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/base.h"
#include "script/debug.h"
#include "script/lua_priv.h"

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

enum {
    ALARM_FIRST_MS = 10,        /* until a script that has just begun polls */
    ALARM_BUSY_MS = 3,          /* while others are served */
    HOOK_INSTRUCTIONS = 100000, /* between polls where there is no alarm */
};

static struct {
    timer_t timer;
    bool failed;
    volatile sig_atomic_t armed;
    volatile sig_atomic_t setting; /* the hook is being set: the handler must not */
    volatile sig_atomic_t rang;    /* since the hook was set */
    luaVm *volatile vm;            /* that runs code of scripts */
} alarm_now;

/* ------------------------------------------------------------------ the hook */

static void hook(lua_State *L, lua_Debug *at) {
    luaVm *vm = luaVmOf(L);
    if (at->event == LUA_HOOKLINE) {
        luaDebugLine(L, at);
        return;
    }
    if (!vm->killed) {
        alarm_now.rang = 0;
        luaGuardSetHook(vm, L);
    }
    luaVmPoll(L, vm);
}

void luaGuardSetHook(luaVm *vm, lua_State *L) {
    hotCheck(threadIsMain());
    int events = 0, count = 0;
    if (vm->debugged) events |= LUA_MASKLINE;
    if (vm->killed) count = 1;
    if (!count && (vm->debugged || alarm_now.failed)) count = HOOK_INSTRUCTIONS;
    if (count) events |= LUA_MASKCOUNT;
    alarm_now.setting = 1;
    (void)lua_sethook(L, events ? hook : NULL, events, count); /* returns 1 always */
    alarm_now.setting = 0;
    if (!alarm_now.rang) return;
    (void)lua_sethook(L, hook, events | LUA_MASKCOUNT, 1);
}

/* ------------------------------------------------------------------ the alarm */

static void onAlarm(int signal_number) {
    (void)signal_number;
    alarm_now.armed = 0;
    luaVm *vm = alarm_now.vm;
    if (!vm) return;
    alarm_now.rang = 1;
    vm->steps_left = 0;
    if (alarm_now.setting || !vm->running) return;
    int events = LUA_MASKCOUNT | (vm->debugged ? LUA_MASKLINE : 0);
    (void)lua_sethook(vm->running, hook, events, 1);
}

/* ThreadSanitizer runs handlers at the next call that it knows: never in a loop of plain Lua. */
#if defined(__SANITIZE_THREAD__)
enum { SIGNALS_ARE_LATE = true };
#else
enum { SIGNALS_ARE_LATE = false };
#endif

static void createAlarm(void) {
    alarm_now.failed = SIGNALS_ARE_LATE;
    if (alarm_now.failed) return;
    struct sigaction action = {.sa_handler = onAlarm, .sa_flags = SA_RESTART};
    sigemptyset(&action.sa_mask);
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGVTALRM};
    event.sigev_notify_thread_id = (pid_t)syscall(SYS_gettid);
    alarm_now.armed = 0;
    alarm_now.failed = sigaction(SIGVTALRM, &action, NULL) != 0 ||
                       timer_create(CLOCK_MONOTONIC, &event, &alarm_now.timer) != 0;
    if (alarm_now.failed) logNotice("No timer for scripts: %s", strerror(errno));
}

static void setAlarm(int ms) {
    if (alarm_now.armed || alarm_now.failed) return;
    struct itimerspec when = {.it_value = {.tv_nsec = ms * 1000000L}};
    alarm_now.armed = 1;
    int failed = timer_settime(alarm_now.timer, 0, &when, NULL);
    check(failed == 0);
}

void luaGuardBegin(luaVm *vm) {
    hotCheck(threadIsMain());
    static bool created;
    if (unlikely(!created)) createAlarm();
    created = true;
    alarm_now.rang = 0;
    vm->running = vm->L;
    vm->steps_left = LUA_STEPS_PER_POLL;
    alarm_now.vm = vm;
    if (unlikely(vm->debugged)) {
        /* A debugger runs in a child, which has no timer, and polls for each line. */
        luaGuardSetHook(vm, vm->L);
    } else {
        setAlarm(ALARM_FIRST_MS);
        if (unlikely(alarm_now.failed)) luaGuardSetHook(vm, vm->L);
    }
}

void luaGuardEnd(luaVm *vm) {
    hotCheck(threadIsMain());
    alarm_now.vm = NULL;
    alarm_now.rang = 0;
    vm->running = NULL;
    vm->killed = vm->debugged = false;
    if (lua_gethookmask(vm->L)) luaGuardSetHook(vm, vm->L);
}

const char *luaKillText(const luaVm *vm) {
    return vm->run->is_function ? "ERR Script killed by user with FUNCTION KILL."
                                : "ERR Script killed by user with SCRIPT KILL.";
}

static void noteKilled(luaVm *vm) {
    if (vm->killed) return;
    vm->killed = true;
    luaGuardSetHook(vm, vm->running);
    logNotice("Lua script killed by user with %s.",
              vm->run->is_function ? "FUNCTION KILL" : "SCRIPT KILL");
}

void luaVmPoll(lua_State *L, luaVm *vm) {
    hotCheck(threadIsMain());
    vm->steps_left = LUA_STEPS_PER_POLL;
    if (alarm_now.rang) {
        alarm_now.rang = 0;
        luaGuardSetHook(vm, vm->running ? vm->running : L);
    }
    if (alarm_now.vm == vm && !vm->debugged)
        setAlarm(vm->run && vm->run->is_busy ? ALARM_BUSY_MS : ALARM_FIRST_MS);
    if (vm->load && clockMonoUs() > vm->load->deadline_us) (void)luaRaise(L, LOAD_TIMEOUT_TEXT);
    if (!vm->run) return;
    if (luaStackIsLow(vm, LUA_STACK_RECURSION)) (void)luaRaiseStackOverflow(L);
    if (scriptRunPoll(vm->run) == SCRIPT_KILLED) noteKilled(vm);
    if (vm->killed) (void)luaRaise(L, luaKillText(vm));
}

bool luaGuardServe(luaVm *vm) {
    vm->steps_left = LUA_STEPS_PER_POLL;
    alarm_now.rang = 0;
    if (!vm->debugged) setAlarm(vm->run->is_busy ? ALARM_BUSY_MS : ALARM_FIRST_MS);
    if (luaStackIsLow(vm, LUA_STACK_RECURSION)) return false;
    if (scriptRunPoll(vm->run) == SCRIPT_KILLED) noteKilled(vm);
    return vm->killed;
}
/* ------------------------------------------------------------------ the stack */

uintptr_t luaGuardStackLow(void) {
    static uintptr_t low;
    enum { UNLIMITED = 8 << 20, MOST = 64 << 20, PAGE = 4096, UNKNOWN = 512 << 10 };
    if (low) return low;
    uintptr_t here = (uintptr_t)__builtin_frame_address(0);
    struct rlimit limit;
    size_t size = UNLIMITED;
    if (getrlimit(RLIMIT_STACK, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
        size = limit.rlim_cur < MOST ? (size_t)limit.rlim_cur : MOST;
    /* The kernel puts the name of the program at the other end of the stack. */
    uintptr_t top = (uintptr_t)getauxval(AT_EXECFN);
    if (top < here || top - here > size) return low = here - UNKNOWN;
    return low = (top & ~(uintptr_t)(PAGE - 1)) - size;
}

int luaRaiseStackOverflow(lua_State *L) {
    luaVm *vm = luaVmOf(L);
    check(vm->held == 0);
    vm->overflowed = true;
    vm->granted = 0;
    vm->fails_once = true;
    if (!lua_checkstack(L, 1)) lua_settop(L, 0);
    (void)lua_newuserdata(L, 1);
    return 0; /* not reached */
}

void luaNameOverflow(lua_State *L, luaVm *vm, int st) {
    hotCheck(threadIsMain());
    if (st != LUA_ERRMEM || !vm->overflowed) return;
    vm->overflowed = false;
    lua_pop(L, 1);
    lua_pushliteral(L, "C stack overflow");
}
