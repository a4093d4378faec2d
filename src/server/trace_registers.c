/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Prints the processor state of a signal context: registers, top of the stack, code around the
 * instruction. Memory is read with process_vm_readv(), so that an invalid pointer is an error
 * instead of another crash. */
#define _GNU_SOURCE /* for register names, process_vm_readv() */
#include <stdio.h>
#include <sys/uio.h>
#include <ucontext.h>
#include <unistd.h>

#include "base/base.h"
#include "server/symbols.h"
#include "server/trace.h"

enum { STACK_WORDS = 16, CODE_BEFORE = 64, CODE_AFTER = 64, LINE_BYTES = 256 };

/* False if not all of it can be read. */
static bool readMemory(uintptr_t at, void *dst, size_t size) {
    struct iovec here = {dst, size}, there = {(void *)at, size};
    return process_vm_readv(getpid(), &here, 1, &there, 1, 0) == (ssize_t)size;
}

#if defined(__linux__) && defined(__x86_64__)
static const struct {
    const char *name;
    int index;
} registers[] = {
    {"RAX", REG_RAX}, {"RBX", REG_RBX}, {"RCX", REG_RCX}, {"RDX", REG_RDX},       {"RDI", REG_RDI},
    {"RSI", REG_RSI}, {"RBP", REG_RBP}, {"RSP", REG_RSP}, {"R8 ", REG_R8},        {"R9 ", REG_R9},
    {"R10", REG_R10}, {"R11", REG_R11}, {"R12", REG_R12}, {"R13", REG_R13},       {"R14", REG_R14},
    {"R15", REG_R15}, {"RIP", REG_RIP}, {"EFL", REG_EFL}, {"CSGSFS", REG_CSGSFS},
};

static uintptr_t registerAt(const ucontext_t *uc, size_t i) {
    return (uintptr_t)uc->uc_mcontext.gregs[registers[i].index];
}
static uintptr_t stackOf(const ucontext_t *uc) { return (uintptr_t)uc->uc_mcontext.gregs[REG_RSP]; }
static uintptr_t pcOf(const ucontext_t *uc) { return (uintptr_t)uc->uc_mcontext.gregs[REG_RIP]; }
static const char machine[] = "i386:x86-64";
#elif defined(__linux__) && defined(__aarch64__)
static const struct {
    const char *name;
    int index;
} registers[] = {
    {"X18", 18}, {"X19", 19}, {"X20", 20}, {"X21", 21}, {"X22", 22},
    {"X23", 23}, {"X24", 24}, {"X25", 25}, {"X26", 26}, {"X27", 27},
    {"X28", 28}, {"X29", 29}, {"X30", 30}, {"SP ", 31}, {"PC ", 32},
};

static uintptr_t registerAt(const ucontext_t *uc, size_t i) {
    int index = registers[i].index;
    if (index == 31) return uc->uc_mcontext.sp;
    return index == 32 ? uc->uc_mcontext.pc : uc->uc_mcontext.regs[index];
}
static uintptr_t stackOf(const ucontext_t *uc) { return uc->uc_mcontext.sp; }
static uintptr_t pcOf(const ucontext_t *uc) { return uc->uc_mcontext.pc; }
static const char machine[] = "aarch64";
#else
#define UNKNOWN_MACHINE
#endif

#ifdef UNKNOWN_MACHINE
void *tracePc(const void *context) {
    (void)context;
    return NULL;
}

void tracePrintRegisters(const void *context, bool show_stack) {
    (void)context, (void)show_stack;
    logRaw("Registers are not supported on this architecture.\n");
}

void tracePrintCode(const void *context) { (void)context; /* the address is not known either */ }
#else
void *tracePc(const void *context) { return (void *)pcOf(context); }

static void printStack(uintptr_t stack) {
    for (int i = STACK_WORDS - 1; i >= 0; i--) {
        uintptr_t at = stack + (uintptr_t)i * sizeof(uintptr_t), word;
        if (readMemory(at, &word, sizeof(word)))
            logWarning("(%016lx) -> %016lx", (unsigned long)at, (unsigned long)word);
    }
}

void tracePrintRegisters(const void *context, bool show_stack) {
    for (size_t i = 0; i < COUNT_OF(registers); i++) {
        char line[LINE_BYTES];
        bool ends = i % 2 == 1 || i + 1 == COUNT_OF(registers);
        snprintf(line, sizeof(line), "%s:%016lx%s", registers[i].name,
                 (unsigned long)registerAt(context, i), ends ? "\n" : " ");
        logRaw(line);
    }
    if (show_stack) {
        printStack(stackOf(context));
    } else {
        logNotice(
            "hide-user-data-from-log is on, skip logging stack content to avoid spilling user data.");
    }
}

void tracePrintCode(const void *context) {
    uintptr_t pc = pcOf(context), from = pc - CODE_BEFORE;
    symbol found;
    bool named = symbolFind((void *)pc, &found) && found.name;
    if (named && (uintptr_t)found.start > from) from = (uintptr_t)found.start;
    uint8_t code[CODE_BEFORE + CODE_AFTER];
    size_t size = (size_t)(pc - from) + CODE_AFTER;
    char line[2 * sizeof(code) + 2];
    if (!readMemory(from, code, size)) return;
    snprintf(line, sizeof(line), "Symbol: %s\n", named ? found.name : "?");
    logRaw(line);
    for (size_t i = 0; i < size; i++) snprintf(line + 2 * i, 3, "%02x", code[i]);
    logRaw(line);
    snprintf(line, sizeof(line), "\n$ xxd -r -p dump.hex dump.bin\n");
    logRaw(line);
    snprintf(line, sizeof(line), "$ objdump --adjust-vma=0x%lx -D -b binary -m %s dump.bin\n",
             (unsigned long)from, machine);
    logRaw(line);
}
#endif
