/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Memory allocation on top of jemalloc (USE_JEMALLOC) or libc, with an exact count of the bytes in
 * use.
 *
 * Invariant: the sum of all per-thread counters is the usable size of every allocated block plus
 * the bytes added with memCount(). One thread may free a block that another one allocated, so a
 * single counter may be negative; only the sum is meaningful. Cost: one plain add per call, on a
 * cache line owned by the calling thread. All functions are ANY_THREAD. */
#include "base/alloc.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#ifdef USE_JEMALLOC
#include <jemalloc/jemalloc.h>
#else
#include <malloc.h>
#endif

#include "base/assert.h"
#include "base/bytes.h"

/* The counter of one thread. Only the owner writes `bytes`; any thread may read it. Counters are
 * never freed: when a thread ends, its counter keeps its value and is reused by the next new
 * thread. */
typedef struct memCounter {
    int64_t bytes;
    struct memCounter *next;
    bool taken;
} ALIGNED(CACHE_LINE) memCounter;

static memCounter *counters; /* list head; counters are added at the head and never removed */
static pthread_mutex_t counters_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_key_t counter_key;
static pthread_once_t counter_once = PTHREAD_ONCE_INIT;
static __thread memCounter *my_counter;
static void (*out_of_memory_proc)(size_t size);

/* Destructor of `counter_key`: runs when a thread ends. */
static void counterRelease(void *arg) {
    memCounter *counter = arg;
    my_counter = NULL;
    pthread_mutex_lock(&counters_lock);
    counter->taken = false;
    pthread_mutex_unlock(&counters_lock);
}

static void counterKeyInit(void) {
    int failed = pthread_key_create(&counter_key, counterRelease);
    check(failed == 0);
}

static NO_INLINE memCounter *counterTake(void) {
    pthread_once(&counter_once, counterKeyInit);
    pthread_mutex_lock(&counters_lock);
    memCounter *counter = counters;
    while (counter && counter->taken) counter = counter->next;
    if (!counter) {
        void *block = NULL;
        int failed = posix_memalign(&block, CACHE_LINE, sizeof(memCounter));
        check(failed == 0);
        counter = block;
        memset(counter, 0, sizeof(*counter));
        counter->next = counters;
        __atomic_store_n(&counters, counter, __ATOMIC_RELEASE);
    }
    counter->taken = true;
    pthread_mutex_unlock(&counters_lock);
    my_counter = counter;
    pthread_setspecific(counter_key, counter); /* on failure the counter is never reused */
    return counter;
}

/* Only the owner writes, so a relaxed load and a relaxed store are enough: no locked
 * instruction. */
ALWAYS_INLINE void countBytes(int64_t bytes) {
    memCounter *counter = my_counter;
    if (unlikely(!counter)) counter = counterTake();
    int64_t now = __atomic_load_n(&counter->bytes, __ATOMIC_RELAXED);
    __atomic_store_n(&counter->bytes, now + bytes, __ATOMIC_RELAXED);
}

ALWAYS_INLINE size_t usableSize(const void *ptr) {
    return malloc_usable_size((void *)(uintptr_t)ptr);
}

#ifdef HOT_CHECKS
static __thread uint64_t my_allocations;

uint64_t memAllocationCount(void) { return my_allocations; }

void memNoteAllocation(void) { my_allocations++; }
#endif

/* Counts a newly allocated block and returns it. The asm statement hides the requested size from
 * the compiler; otherwise, after link-time inlining, _FORTIFY_SOURCE would reject writes into the
 * rest of the usable block. */
ALWAYS_INLINE void *countAllocation(void *ptr, int64_t old_size) {
    __asm__("" : "+r"(ptr));
    countBytes((int64_t)usableSize(ptr) - old_size);
    memNoteAllocation();
    return ptr;
}

static void __attribute__((noreturn, cold)) outOfMemory(size_t size) {
    if (out_of_memory_proc) out_of_memory_proc(size);
    panic("Out of memory allocating %zu bytes", size);
}

/* Larger blocks are refused: the difference of two pointers into a block must fit in ptrdiff_t. */
ALWAYS_INLINE bool sizeIsValid(size_t size) { return likely(size <= PTRDIFF_MAX); }

void *memTryAlloc(size_t size) {
    if (!sizeIsValid(size)) return NULL;
    void *ptr = malloc(size ? size : 1);
    if (unlikely(!ptr)) return NULL;
    return countAllocation(ptr, 0);
}

void *memAlloc(size_t size) {
    void *ptr = memTryAlloc(size);
    if (unlikely(!ptr)) outOfMemory(size);
    return ptr;
}

void *memCalloc(size_t count, size_t size) {
    size_t total;
    if (__builtin_mul_overflow(count, size, &total)) outOfMemory(SIZE_MAX);
    void *ptr = sizeIsValid(total) ? calloc(1, total ? total : 1) : NULL;
    if (unlikely(!ptr)) outOfMemory(total);
    return countAllocation(ptr, 0);
}

void *memTryRealloc(void *ptr, size_t size) {
    if (!ptr) return memTryAlloc(size);
    if (!sizeIsValid(size)) return NULL;
    size_t old_size = usableSize(ptr);
    if (memGoodSize(size) == old_size)
        return ptr; /* realloc() would return the same block, only more slowly */
    void *moved = realloc(ptr, size ? size : 1);
    if (unlikely(!moved)) return NULL;
    return countAllocation(moved, (int64_t)old_size);
}

void *memRealloc(void *ptr, size_t size) {
    void *moved = memTryRealloc(ptr, size);
    if (unlikely(!moved)) outOfMemory(size);
    return moved;
}

void memFree(void *ptr) {
    if (!ptr) return;
    size_t size = usableSize(ptr);
    countBytes(-(int64_t)size);
#ifdef USE_JEMALLOC
    sdallocx(ptr, size, 0); /* passing the size saves jemalloc a lookup */
#else
    free(ptr);
#endif
}

#ifdef USE_JEMALLOC
/* The size that jemalloc allocates for a request of `size` bytes is in known_sizes[(size + 15) /
 * 16]; 0: not computed yet. All threads would store the same value, so no lock is needed. */
enum { KNOWN_MAX = 1024 };
static uint16_t known_sizes[KNOWN_MAX / 16 + 1];

ALWAYS_INLINE size_t knownSize(size_t size) {
    if (unlikely(size > KNOWN_MAX || size <= 8)) return nallocx(size ? size : 1, 0);
    uint16_t *known = &known_sizes[(size + 15) / 16];
    uint16_t good = __atomic_load_n(known, __ATOMIC_RELAXED);
    if (likely(good)) return good;
    size_t asked = nallocx(size, 0);
    __atomic_store_n(known, (uint16_t)asked, __ATOMIC_RELAXED);
    return asked;
}

void *memTryAllocKnown(size_t size) {
    if (!sizeIsValid(size)) return NULL;
    void *ptr = malloc(size ? size : 1);
    if (unlikely(!ptr)) return NULL;
    countBytes((int64_t)knownSize(size));
    memNoteAllocation();
    return ptr;
}

void memFreeKnown(void *ptr, size_t size) {
    if (!ptr) return;
    size_t good = knownSize(size);
    hotCheck(good == usableSize(ptr));
    countBytes(-(int64_t)good);
    sdallocx(ptr, good, 0);
}
#else
void *memTryAllocKnown(size_t size) { return memTryAlloc(size); }

void memFreeKnown(void *ptr, size_t size) {
    (void)size; /* the allocator cannot use it */
    memFree(ptr);
}
#endif

size_t memSizeOf(const void *ptr) { return ptr ? usableSize(ptr) : 0; }

size_t memGoodSize(size_t size) {
    if (!sizeIsValid(size)) return size;
    if (size == 0) size = 1;
#if defined(USE_JEMALLOC)
    size_t good = nallocx(size, 0);
    return good ? good : size;
#elif defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__)
    /* A glibc chunk is a multiple of 16 bytes with one word of overhead, at least 32 bytes. */
    return size <= 24 ? 24 : sizeRoundUp(size + 8, 16) - 8;
#else
    return size;
#endif
}

char *memDup(const void *bytes, size_t len) {
    char *copy = memAlloc(len + 1);
    if (len) memcpy(copy, bytes, len);
    copy[len] = '\0';
    return copy;
}

size_t memUsed(void) {
    int64_t sum = 0;
    for (memCounter *c = __atomic_load_n(&counters, __ATOMIC_ACQUIRE); c; c = c->next)
        sum += __atomic_load_n(&c->bytes, __ATOMIC_RELAXED);
    /* The sum may be negative for a moment: another thread's free may be visible before the
     * allocation it belongs to. */
    return sum > 0 ? (size_t)sum : 0;
}

void memCount(ptrdiff_t bytes) { countBytes(bytes); }

/* The memory limit of the control group (v1 or v2) in bytes; UINT64_MAX if there is none. */
static uint64_t groupLimit(void) {
    static const char *const paths[] = {"/sys/fs/cgroup/memory.max",
                                        "/sys/fs/cgroup/memory/memory.limit_in_bytes"};
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        FILE *f = fopen(paths[i], "re");
        if (!f) continue;
        unsigned long long bytes;
        bool found = fscanf(f, "%llu", &bytes) == 1; /* "max" means no limit */
        fclose(f);
        if (found) return bytes;
    }
    return UINT64_MAX;
}

uint64_t memMachineBytes(void) {
    uint64_t own = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    uint64_t group = groupLimit();
    return group < own ? group : own;
}

/* Sizes of the process in bytes, as the kernel reports them; 0 if it does not. */
typedef struct processSize {
    size_t address_space, resident;
} processSize;

static processSize readProcessSize(void) {
    unsigned long long all = 0, resident = 0;
    FILE *f = fopen("/proc/self/statm", "re");
    if (!f) return (processSize){0, 0};
    if (fscanf(f, "%llu %llu", &all, &resident) != 2) all = resident = 0;
    fclose(f); /* opened read-only: an error here loses nothing */
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    return (processSize){(size_t)all * page, (size_t)resident * page};
}

static size_t residentBytes(void) { return readProcessSize().resident; }

/* Allocates and frees the bytes. */
static bool tryBytes(size_t bytes, bool in_pieces) {
    enum { PIECE = 4 << 20 };
    void **pieces = NULL;
    bool ok = true;
    for (size_t done = 0; done < bytes && ok;) {
        size_t size = in_pieces && bytes - done > PIECE ? PIECE : bytes - done;
        done += size;
        if (size < sizeof(void *)) size = sizeof(void *);
        void **piece = memTryAlloc(size);
        ok = piece != NULL;
        if (!ok) break;
        *piece = (void *)pieces;
        pieces = piece;
    }
    while (pieces) {
        void **next = *pieces;
        memFree((void *)pieces);
        pieces = next;
    }
    return ok;
}

bool memHasRoom(size_t bytes, bool in_pieces) {
    /* The allocator needs space for its own records, too, when it uses memory that it has kept. */
    enum { SPARE = 64 << 20, SPARE_FOR_RECORDS = 24 << 20 };
    struct rlimit limit;
    bool is_limited = getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
    size_t before = is_limited ? readProcessSize().address_space : 0;
    if (!tryBytes(bytes, in_pieces)) return false;
    if (!is_limited) return true;
    size_t after = readProcessSize().address_space;
    return after + (after == before ? SPARE_FOR_RECORDS : SPARE) <= limit.rlim_cur;
}

#ifdef USE_JEMALLOC
#define TEXT_OF(x) TEXT_OF_TOKEN(x)
#define TEXT_OF_TOKEN(x) #x
#define ALL_ARENAS TEXT_OF(MALLCTL_ARENAS_ALL)

/* Reads one jemalloc statistic; 0 if this jemalloc was built without it. */
static size_t jemallocStatistic(const char *name) {
    size_t value = 0, len = sizeof(value);
    return mallctl(name, &value, &len, NULL, 0) == 0 ? value : 0;
}

void memReportRead(memReport *out) {
    uint64_t epoch = 1;
    size_t len = sizeof(epoch);
    /* Statistics are refreshed by advancing the epoch. If that fails, the previous values are
     * returned. */
    (void)mallctl("epoch", &epoch, &len, &epoch, len);
    out->allocated = jemallocStatistic("stats.allocated");
    out->active = jemallocStatistic("stats.active");
    out->resident = jemallocStatistic("stats.resident");
    out->muzzy =
        jemallocStatistic("stats.arenas." ALL_ARENAS ".pmuzzy") * jemallocStatistic("arenas.page");
    out->rss = residentBytes();
    out->is_whole = false;
}

const char *memAllocatorName(void) {
    return "jemalloc-" TEXT_OF(JEMALLOC_VERSION_MAJOR) "." TEXT_OF(
        JEMALLOC_VERSION_MINOR) "." TEXT_OF(JEMALLOC_VERSION_BUGFIX);
}

void memPurge(void) {
    /* Best effort: pages that cannot be returned now are returned later. */
    (void)mallctl("arena." ALL_ARENAS ".purge", NULL, NULL, NULL, 0);
}

/* True if the block is in a page run that is emptier than the average run of its size class, and
 * that is not the run from which jemalloc serves the next allocation of that size. */
static bool isSparse(void *ptr) {
    enum { EMPTY_SHARE = 8 }; /* one slot in this many must be free to make a move worthwhile */
    static size_t mib[8], mib_len;
    struct {
        void *next_from;
        size_t free, blocks, bytes, size_free,
            size_blocks; /* of the run; then of all runs of this size class */
    } use;
    if (mib_len == 0) {
        size_t len = sizeof(mib) / sizeof(mib[0]);
        if (mallctlnametomib("experimental.utilization.query", mib, &len) != 0) return false;
        mib_len = len;
    }
    size_t len = sizeof(use);
    if (mallctlbymib(mib, mib_len, &use, &len, (void *)&ptr, sizeof(ptr)) != 0) return false;
    if (len != sizeof(use) || use.blocks < 2 || use.size_blocks == 0) return false;
    size_t offset = (size_t)((uintptr_t)ptr - (uintptr_t)use.next_from);
    if (offset < use.bytes) return false;
    return use.free >= use.blocks / EMPTY_SHARE &&
           use.free * use.size_blocks > use.size_free * use.blocks;
}

void *memMoveIfSparse(void *ptr) {
    if (!isSparse(ptr)) return NULL;
    size_t size = usableSize(ptr);
    void *moved =
        mallocx(size, MALLOCX_TCACHE_NONE); /* the thread cache may hold blocks of sparse runs */
    if (!moved) return NULL;
    memcpy(moved, ptr, size);
    sdallocx(ptr, size, MALLOCX_TCACHE_NONE);
    return moved;
}

size_t memSparseBytes(void) {
    memReport report;
    memReportRead(&report);
    return report.active > report.allocated ? report.active - report.allocated : 0;
}

static bool background_thread;

void memSetBackgroundThread(int on) {
    bool value = background_thread = on != 0;
    /* Best effort: where there is no background thread, the calling threads purge. */
    (void)mallctl("background_thread", NULL, NULL, &value, sizeof(value));
}

void memAfterFork(void) { memSetBackgroundThread(background_thread); }

int memControlInt(const char *name, const int64_t *set, int64_t *value) {
    /* The size of a setting is not known; jemalloc accepts the right one only. */
    static const size_t sizes[] = {sizeof(int64_t), sizeof(int32_t), sizeof(bool)};
    int error = EINVAL;
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]) && error == EINVAL; i++) {
        int64_t before = 0, after = set ? *set : 0; /* little-endian: their first bytes count */
        size_t len = sizes[i];
        error = mallctl(name, &before, &len, set ? &after : NULL, set ? sizes[i] : 0);
        if (error == 0) *value = before;
    }
    return error;
}

int memControlText(const char *name, const char **text) {
    /* jemalloc does not tell a pointer to a text from a number of the same size. */
    static const char *const texts[] = {"version",          "config.malloc_conf", "opt.dss",
                                        "opt.metadata_thp", "opt.percpu_arena",   "opt.thp"};
    size_t at = 0, count = sizeof(texts) / sizeof(texts[0]);
    while (at < count && strcmp(texts[at], name) != 0) at++;
    if (at == count) return ENOENT;
    size_t len = sizeof(*text);
    return mallctl(name, (void *)text, &len, NULL, 0);
}

typedef struct statsText {
    char *text;
    size_t len;
} statsText;

static void statsAppend(void *arg, const char *text) {
    statsText *stats = arg;
    size_t len = strlen(text);
    stats->text = memRealloc(stats->text, stats->len + len + 1);
    memcpy(stats->text + stats->len, text, len + 1);
    stats->len += len;
}

char *memAllocatorStats(void) {
    statsText stats = {memDup("", 0), 0};
    malloc_stats_print(statsAppend, &stats, NULL);
    return stats.text;
}
#else
void memReportRead(memReport *out) {
    out->rss = residentBytes();
    out->allocated = memUsed();
    out->active = out->rss;
    out->resident = out->rss;
    out->muzzy = 0;
    out->is_whole = true;
}

const char *memAllocatorName(void) { return "libc"; }

void memPurge(void) {
#ifdef __GLIBC__
    malloc_trim(0);
#endif
}

void *memMoveIfSparse(void *ptr) {
#ifdef HOSTILE_BUILD
    size_t size = usableSize(ptr);
    void *moved = memAlloc(size); /* always move, so that tests find stale references */
    memcpy(moved, ptr, size);
    memFree(ptr);
    return moved;
#else
    (void)ptr; /* libc has no such query */
    return NULL;
#endif
}

size_t memSparseBytes(void) { return 0; }

void memSetBackgroundThread(int on) { (void)on; /* libc has none */ }
void memAfterFork(void) {}

int memControlInt(const char *name, const int64_t *set, int64_t *value) {
    (void)name, (void)set, (void)value; /* libc has no settings by name */
    return ENOTSUP;
}

int memControlText(const char *name, const char **text) {
    (void)name, (void)text;
    return ENOTSUP;
}

char *memAllocatorStats(void) {
    static const char text[] = "Stats not supported for the current allocator";
    return memDup(text, sizeof(text) - 1);
}
#endif

void memSetOutOfMemoryProc(void (*proc)(size_t size)) { out_of_memory_proc = proc; }
