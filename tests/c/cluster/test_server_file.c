/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The configuration file of a node: what is flushed to the disk by which save, in which order, and
 * the lock. */
#include "../bus/bus_test.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "base/log.h"
#include "cluster/cluster_priv.h"
#include "cluster/server_file.h"
#include "io/file.h"
#include "io/sys.h"

static char folder[64], path[96];
/* What was done since the test began: f a file was flushed, F a folder, r renamed. */
static char steps[16];

static void note(char step) {
    size_t len = strlen(steps);
    assert_true(len + 1 < sizeof(steps));
    steps[len] = step;
}

static int notingFsync(int fd) {
    struct stat st;
    assert_int_equal(fstat(fd, &st), 0);
    note(S_ISDIR(st.st_mode) ? 'F' : 'f');
    return 0;
}

static int notingRename(const char *from, const char *to) {
    note('r');
    return rename(from, to);
}

static int failingFsync(int fd) {
    (void)fd;
    errno = EIO;
    return -1;
}

static const sysCalls noting = {.fsync = notingFsync, .rename = notingRename};
static const sysCalls failing = {.fsync = failingFsync};

static void begin(const sysCalls *calls) {
    memset(steps, 0, sizeof(steps));
    sysCallsSet(calls);
}

static int makeFolder(void **state) {
    logSetLevel(LOG_NOTHING);
    snprintf(folder, sizeof(folder), "/tmp/server_file_%d", (int)getpid());
    if (mkdir(folder, 0700) != 0) return -1;
    snprintf(path, sizeof(path), "%s/nodes.conf", folder);
    clusterConf.cluster_config_file = path;
    clusterConf.cluster_config_save_behavior = SAVE_BEST_EFFORT;
    return 0;
}

static int removeFolder(void **state) {
    static const char *const suffixes[] = {"", ".bak", ".lock", ".old"};
    sysCallsSet(NULL);
    serverFileWait();
    serverFileInChild(); /* gives the lock back */
    for (size_t i = 0; i < COUNT_OF(suffixes); i++) {
        char name[128];
        snprintf(name, sizeof(name), "%s%s", path, suffixes[i]);
        unlink(name);
    }
    int result = rmdir(folder);
    clusterConf.cluster_config_file = NULL;
    logSetLevel(LOG_NOTICE);
    return result;
}

static void openNew(clusterMap *m) {
    bool found, intact;
    reason why;
    assert_int_equal(serverFileOpen(m, &found, &intact, &why), OK);
    assert_false(found);
    clusterMapInit(m, 1000);
}

static void only_saves_that_must_be_are_flushed(void **state) {
    clusterMap m = {0};
    reason why;
    openNew(&m);
    begin(&noting);
    assert_int_equal(serverFileWrite(&m, false, &why), OK);
    assert_string_equal(steps, "r");
    /* The new file, its names, and the folder of both; then the copy becomes another file. */
    begin(&noting);
    assert_int_equal(serverFileWrite(&m, true, &why), OK);
    serverFileWait();
    assert_string_equal(steps, "frrFfr");
    clusterMapClear(&m);
}

/* Where the file cannot have two names, the copy is on the disk before the file is replaced. */
static void the_copy_is_flushed_first_if_the_file_is_a_link(void **state) {
    clusterMap m = {0};
    reason why;
    char target[128];
    openNew(&m);
    snprintf(target, sizeof(target), "%s.lock", path); /* any other file */
    assert_int_equal(symlink(target, path), 0);
    begin(&noting);
    assert_int_equal(serverFileWrite(&m, true, &why), OK);
    serverFileWait();
    assert_string_equal(steps, "frfrF");
    clusterMapClear(&m);
}

static void a_copy_that_is_the_same_file_is_made_anew_at_the_start(void **state) {
    clusterMap m = {0}, again = {0};
    reason why;
    bool found, intact;
    char copy[128];
    openNew(&m);
    assert_int_equal(serverFileWrite(&m, true, &why), OK);
    serverFileWait();
    snprintf(copy, sizeof(copy), "%s.bak", path);
    assert_false(fileIsSame(path, copy));
    /* As a crash between the two steps leaves it. */
    assert_int_equal(unlink(copy), 0);
    assert_int_equal(link(path, copy), 0);
    serverFileInChild();
    assert_int_equal(serverFileOpen(&again, &found, &intact, &why), OK);
    assert_true(found);
    assert_false(intact);
    clusterMapClear(&m);
    clusterMapClear(&again);
}

static status ended_with;
static int ended_count;

static void noteEnd(status st) {
    ended_with = st;
    ended_count++;
}

static void the_thread_reports_the_end_of_a_save(void **state) {
    clusterMap m = {0};
    bool failed;
    openNew(&m);
    ended_count = 0;
    begin(&failing);
    serverFileBegin(&m, true, noteEnd);
    serverFileWait();
    assert_int_equal(ended_count, 1);
    assert_int_equal(ended_with, ERR_IO);
    (void)serverFileSavedAt(&failed);
    assert_true(failed);
    begin(&noting);
    serverFileBegin(&m, true, noteEnd);
    serverFileWait();
    assert_int_equal(ended_count, 2);
    assert_int_equal(ended_with, OK);
    assert_true(serverFileSavedAt(&failed) > 0);
    assert_false(failed);
    clusterMapClear(&m);
}

static void the_copy_has_the_last_vote_although_later_saves_were_not_flushed(void **state) {
    clusterMap m = {0}, again = {0};
    reason why;
    bool found, intact;
    openNew(&m);
    clusterMapSetEpochs(&m, 7, 7);
    assert_int_equal(serverFileWrite(&m, true, &why), OK);
    clusterMapSetText(&m, &m.myself->hostname, SLICE("later.example"));
    assert_int_equal(serverFileWrite(&m, false, &why), OK);
    clusterMapClear(&m);
    serverFileInChild();
    assert_int_equal(truncate(path, 30), 0);
    assert_int_equal(serverFileOpen(&again, &found, &intact, &why), OK);
    assert_true(found);
    assert_false(intact);
    assert_int_equal(again.vote_epoch, 7);
    clusterMapClear(&again);
}

/* True if another process could start with the file. */
static bool lockIsFree(void) {
    char name[128];
    snprintf(name, sizeof(name), "%s.lock", path);
    int fd = open(name, O_RDWR);
    assert_true(fd >= 0);
    bool free = flock(fd, LOCK_EX | LOCK_NB) == 0;
    close(fd);
    return free;
}

static void the_lock_holds_after_the_file_was_replaced(void **state) {
    clusterMap m = {0};
    reason why;
    openNew(&m);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(serverFileWrite(&m, i, &why), OK);
        assert_false(lockIsFree());
    }
    serverFileInChild();
    assert_true(lockIsFree());
    clusterMapClear(&m);
}

static void a_file_that_is_in_use_is_refused(void **state) {
    clusterMap m = {0};
    reason why;
    bool found, intact;
    char name[128];
    snprintf(name, sizeof(name), "%s.lock", path);
    int fd = open(name, O_RDWR | O_CREAT, 0600);
    assert_int_equal(flock(fd, LOCK_EX), 0);
    assert_int_equal(serverFileOpen(&m, &found, &intact, &why), ERR_DENIED);
    assert_non_null(strstr(why.text, "is already used by a different Cluster node"));
    close(fd);
    assert_int_equal(serverFileOpen(&m, &found, &intact, &why), OK);
    assert_false(found);
}

int test_server_file(void);
int test_server_file(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(only_saves_that_must_be_are_flushed, makeFolder,
                                        removeFolder),
        cmocka_unit_test_setup_teardown(the_copy_is_flushed_first_if_the_file_is_a_link, makeFolder,
                                        removeFolder),
        cmocka_unit_test_setup_teardown(a_copy_that_is_the_same_file_is_made_anew_at_the_start,
                                        makeFolder, removeFolder),
        cmocka_unit_test_setup_teardown(the_thread_reports_the_end_of_a_save, makeFolder,
                                        removeFolder),
        cmocka_unit_test_setup_teardown(
            the_copy_has_the_last_vote_although_later_saves_were_not_flushed, makeFolder,
            removeFolder),
        cmocka_unit_test_setup_teardown(a_file_that_is_in_use_is_refused, makeFolder, removeFolder),
        cmocka_unit_test_setup_teardown(the_lock_holds_after_the_file_was_replaced, makeFolder,
                                        removeFolder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
