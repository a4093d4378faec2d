/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The memory test: four patterns and each word's own address, each written to a whole page before
 * it is read back, so that coupled bits are detected. Invariant: between two pages all memory has
 * its original contents. Takes about a second per gigabyte and pass. */
#include "server/memcheck.h"

#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>

#include "base/base.h"

enum { PAGE_BYTES = 4096, PAGE_WORDS = PAGE_BYTES / 8 };

static const uint64_t patterns[] = {0, UINT64_MAX, UINT64_C(0x5555555555555555),
                                    UINT64_C(0xaaaaaaaaaaaaaaaa)};

/* Each word holds its own address, which detects stuck address lines. */
static size_t testAddresses(volatile uint64_t *page) {
    size_t errors = 0;
    for (int i = 0; i < PAGE_WORDS; i++) page[i] = (uint64_t)(uintptr_t)(page + i);
    for (int i = 0; i < PAGE_WORDS; i++) errors += page[i] != (uint64_t)(uintptr_t)(page + i);
    return errors;
}

static size_t testPage(volatile uint64_t *page) {
    uint64_t kept[PAGE_WORDS];
    size_t errors = 0;
    for (int i = 0; i < PAGE_WORDS; i++) kept[i] = page[i];
    for (size_t p = 0; p < COUNT_OF(patterns); p++) {
        for (int i = 0; i < PAGE_WORDS; i++) page[i] = patterns[p];
        for (int i = 0; i < PAGE_WORDS; i++) errors += page[i] != patterns[p];
    }
    errors += testAddresses(page);
    for (int i = 0; i < PAGE_WORDS; i++) page[i] = kept[i];
    return errors;
}

size_t memcheckRange(void *at, size_t size) {
    size_t errors = 0;
    for (size_t done = 0; done + PAGE_BYTES <= size; done += PAGE_BYTES) {
        errors += testPage((volatile uint64_t *)((char *)at + done));
    }
    return errors;
}

bool memcheckRun(size_t megabytes, int passes) {
    if (megabytes > SIZE_MAX >> 20) return false;
    size_t size = megabytes << 20;
    void *block = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (block == MAP_FAILED) {
        printf("Unable to allocate %zu megabytes.\n", megabytes);
        return false;
    }
    size_t errors = 0;
    for (int pass = 1; pass <= passes; pass++) {
        errors += memcheckRange(block, size);
        printf("Pass %d of %d over %zu megabytes: %zu errors\n", pass, passes, megabytes, errors);
        fflush(stdout);
    }
    munmap(block, size);
    if (errors) {
        printf("Memory errors were found: replace the memory modules before using this machine.\n");
    } else {
        printf(
            "Your memory passed this test. For a more thorough test run memtest86 for several hours.\n");
    }
    return errors == 0;
}
