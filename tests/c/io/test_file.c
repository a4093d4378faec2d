/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Tests of io/file: reading whole files, replacing them atomically, names. */
#include "io_test.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "io/file.h"
#include "io/sys.h"

enum { NOBODY = 65534 };

static void writePlainly(const char *path, slice content) {
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_int_equal(fwrite(content.ptr, 1, content.len, f), content.len);
    assert_int_equal(fclose(f), 0);
}

static void assertContent(const char *path, slice content) {
    str got = STR_EMPTY;
    assert_int_equal(fileReadAll(path, 1000000, &got, NULL), OK);
    assert_int_equal(got.len, content.len);
    assert_memory_equal(strText(&got), content.ptr, content.len);
    strFree(&got);
}

static int filesInFolder(void) {
    int count = 0;
    DIR *dir = opendir(testFolder());
    assert_non_null(dir);
    for (const struct dirent *entry; (entry = readdir(dir));) count += entry->d_name[0] != '.';
    closedir(dir);
    return count;
}

static int emptyFolder(void **state) {
    (void)state;
    sysCallsSet(NULL);
    testFolderRemove();
    testFolder();
    return 0;
}

static void test_read_reads_all_or_fails(void **state) {
    (void)state;
    const char *path = testPath("file");
    reason why;
    str got = STR_EMPTY;
    assert_int_equal(fileReadAll(path, 100, &got, &why), ERR_NOT_FOUND);
    assert_non_null(strstr(why.text, "No such file"));
    assert_int_equal(fileReadAll(testFolder(), 100, &got, &why), ERR_IO);
    assert_null(got.ptr);
    writePlainly(path, SLICE(""));
    assertContent(path, SLICE(""));
    writePlainly(path, SLICE("a\0bc"));
    assertContent(path, SLICE("a\0bc"));
    assert_int_equal(fileReadAll(path, 4, &got, &why), OK);
    assert_int_equal(got.len, 4);
    strFree(&got);
    assert_int_equal(fileReadAll(path, 3, &got, &why), ERR_LIMIT);
    assert_int_equal(fileReadAll(path, 0, &got, &why), ERR_LIMIT);
    assert_null(got.ptr);
}

static void test_large_files(void **state) {
    (void)state;
    const char *path = testPath("large");
    size_t len = 300000;
    char *content = memAlloc(len);
    for (size_t i = 0; i < len; i++) content[i] = (char)(i * 31 >> 3);
    assert_int_equal(fileReplace(path, sliceMake(content, len), 0600, NULL), OK);
    assertContent(path, sliceMake(content, len));
    memFree(content);
}

static void test_dash_reads_standard_input(void **state) {
    (void)state;
    int ends[2], saved = dup(STDIN_FILENO);
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], "piped", 5), 5);
    close(ends[1]);
    dup2(ends[0], STDIN_FILENO);
    close(ends[0]);
    assertContent("-", SLICE("piped"));
    dup2(saved, STDIN_FILENO);
    close(saved);
}

static void test_replace_creates_keeps_the_mode_and_removes_its_temporary_file(void **state) {
    (void)state;
    const char *path = testPath("file");
    struct stat st;
    mode_t mask = umask(022);
    assert_int_equal(fileReplace(path, SLICE("one"), 0640, NULL), OK);
    assertContent(path, SLICE("one"));
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0640);
    assert_int_equal(chmod(path, 0604), 0);
    assert_int_equal(fileReplace(path, SLICE("two and more"), 0640, NULL), OK);
    assertContent(path, SLICE("two and more"));
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0604);
    assert_int_equal(fileReplace(path, SLICE(""), 0640, NULL), OK);
    assertContent(path, SLICE(""));
    assert_int_equal(filesInFolder(), 1);
    umask(mask);
}

static int bent_calls;

static ssize_t writeLittle(int fd, const void *src, size_t len) {
    if (++bent_calls % 3 == 0) {
        errno = EINTR;
        return -1;
    }
    return write(fd, src, len > 3 ? 3 : len);
}

static ssize_t readLittle(int fd, void *dst, size_t len) {
    if (++bent_calls % 3 == 0) {
        errno = EINTR;
        return -1;
    }
    return read(fd, dst, len > 2 ? 2 : len);
}

static ssize_t writeUntilFull(int fd, const void *src, size_t len) {
    if (++bent_calls > 2) {
        errno = ENOSPC;
        return -1;
    }
    return write(fd, src, len > 3 ? 3 : len);
}

static int failFsync(int fd) {
    (void)fd;
    errno = EIO;
    return -1;
}

static int fsyncRefusesFolders(int fd) {
    struct stat st;
    if (fstat(fd, &st) == 0 && S_ISDIR(st.st_mode)) {
        errno = EINVAL;
        return -1;
    }
    return 0;
}

static int failRename(const char *from, const char *to) {
    (void)from, (void)to;
    errno = EXDEV;
    return -1;
}

static void test_short_and_interrupted_calls_are_continued(void **state) {
    (void)state;
    const sysCalls little = {.write = writeLittle, .read = readLittle};
    const char *path = testPath("file");
    sysCallsSet(&little);
    assert_int_equal(fileReplace(path, SLICE("a dozen or two of bytes"), 0600, NULL), OK);
    assertContent(path, SLICE("a dozen or two of bytes"));
}

static void test_a_failed_replace_keeps_the_old_file(void **state) {
    (void)state;
    const sysCalls bent[] = {
        {.write = writeUntilFull}, {.fsync = failFsync}, {.rename = failRename}};
    static const char *const words[] = {"No space left", "Input/output error",
                                        "Invalid cross-device"};
    const char *path = testPath("file");
    writePlainly(path, SLICE("the old"));
    for (size_t i = 0; i < COUNT_OF(bent); i++) {
        reason why = {{0}};
        bent_calls = 0;
        sysCallsSet(&bent[i]);
        assert_int_equal(fileReplace(path, SLICE("the new and longer"), 0600, &why), ERR_IO);
        sysCallsSet(NULL);
        if (!strstr(why.text, words[i])) fail_msg("%s", why.text);
        assertContent(path, SLICE("the old"));
        assert_int_equal(filesInFolder(), 1);
    }
    reason why;
    assert_int_equal(fileReplace("/nonexistent/folder/x", SLICE("x"), 0600, &why), ERR_IO);
    assert_non_null(strstr(why.text, "No such file"));
}

static void test_a_link_is_followed_and_stays_a_link(void **state) {
    (void)state;
    char real[PATH_MAX], link[PATH_MAX], outer[PATH_MAX];
    struct stat st;
    snprintf(real, sizeof(real), "%s", testPath("real"));
    snprintf(link, sizeof(link), "%s", testPath("link"));
    snprintf(outer, sizeof(outer), "%s", testPath("outer"));
    assert_int_equal(symlink("real", link), 0);
    assert_int_equal(symlink(link, outer), 0);
    /* At first there is no file behind the links. */
    assert_int_equal(fileReplace(outer, SLICE("one"), 0640, NULL), OK);
    assertContent(real, SLICE("one"));
    assert_int_equal(chmod(real, 0600), 0);
    assert_int_equal(fileReplace(link, SLICE("two"), 0640, NULL), OK);
    assertContent(real, SLICE("two"));
    assert_int_equal(stat(real, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    assert_int_equal(lstat(outer, &st), 0);
    assert_true(S_ISLNK(st.st_mode));
    assert_int_equal(lstat(link, &st), 0);
    assert_true(S_ISLNK(st.st_mode));
    assert_int_equal(filesInFolder(), 3);
    assert_int_equal(unlink(link), 0);
    assert_int_equal(symlink(outer, link), 0);
    reason why;
    assert_int_equal(fileReplace(link, SLICE("x"), 0600, &why), ERR_IO);
    assert_non_null(strstr(why.text, "symbolic links"));
}

static void test_what_is_no_file_is_not_replaced(void **state) {
    (void)state;
    const char *path = testPath("pipe");
    struct stat st;
    reason why;
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(fileReplace(path, SLICE("x"), 0600, &why), ERR_IO);
    assert_int_equal(stat(path, &st), 0);
    assert_true(S_ISFIFO(st.st_mode));
    assert_int_equal(fileReplace(testFolder(), SLICE("x"), 0600, &why), ERR_IO);
    assert_non_null(strstr(why.text, "Is a directory"));
}

static int renameIsBusy(const char *from, const char *to) {
    (void)from, (void)to;
    errno = EBUSY;
    return -1;
}

static void test_a_mounted_file_is_written_in_place(void **state) {
    (void)state;
    const sysCalls mounted = {.rename = renameIsBusy, .write = writeLittle};
    const char *path = testPath("file");
    struct stat before, after;
    writePlainly(path, SLICE("the old and longer"));
    assert_int_equal(stat(path, &before), 0);
    sysCallsSet(&mounted);
    assert_int_equal(fileReplace(path, SLICE("short"), 0600, NULL), OK);
    assertContent(path, SLICE("short"));
    assert_int_equal(fileReplace(path, SLICE("the new and much longer text"), 0600, NULL), OK);
    assertContent(path, SLICE("the new and much longer text"));
    sysCallsSet(NULL);
    assert_int_equal(stat(path, &after), 0);
    assert_int_equal(after.st_ino, before.st_ino);
    assert_int_equal(filesInFolder(), 1);
    assert_int_equal(unlink(path), 0);
    /* A new file is not: there is nothing to write to. */
    reason why;
    sysCallsSet(&mounted);
    assert_int_equal(fileReplace(path, SLICE("x"), 0600, &why), ERR_IO);
    sysCallsSet(NULL);
    assert_non_null(strstr(why.text, "can't rename"));
    assert_int_equal(filesInFolder(), 0);
}

/* Runs fileReplace() as another user; 0 if it has succeeded, else the errno of its failure. */
static int replaceAsNobody(const char *path) {
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        fileFailure failure;
        if (setgroups(0, NULL) != 0 || setgid(NOBODY) != 0 || setuid(NOBODY) != 0) _exit(255);
        _exit(fileReplaceAs(path, SLICE("new"), 0600, FILE_FLUSH_ALL, &failure) == OK
                  ? 0
                  : failure.error);
    }
    int code;
    assert_int_equal(waitpid(pid, &code, 0), pid);
    assert_true(WIFEXITED(code));
    return WEXITSTATUS(code);
}

static void test_owner_and_mode_are_kept_or_the_file_is_refused(void **state) {
    (void)state;
    static const struct {
        mode_t folder, mode;
        uid_t owner;
        int error;
    } cases[] = {
        {0777, 0640, NOBODY, 0},      /* it is ours */
        {0777, 0666, 0, 0},           /* we may write it, but cannot give it away: in place */
        {0755, 0666, 0, 0},           /* no file can be created beside it: in place */
        {0755, 0600, NOBODY, 0},      /* the same */
        {0777, 0644, 0, EACCES},      /* only read */
        {0777, 0440, NOBODY, EACCES}, /* its owner protects it from changes */
        {0755, 0644, 0, EACCES},
    };
    const char *path = testPath("file");
    if (geteuid() != 0) skip();
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct stat st;
        (void)unlink(path);
        writePlainly(path, SLICE("the old"));
        assert_int_equal(chown(path, cases[i].owner, NOBODY), 0);
        assert_int_equal(chmod(path, cases[i].mode), 0);
        assert_int_equal(chmod(testFolder(), cases[i].folder), 0);
        assert_int_equal(replaceAsNobody(path), cases[i].error);
        assertContent(path, cases[i].error ? SLICE("the old") : SLICE("new"));
        assert_int_equal(stat(path, &st), 0);
        assert_int_equal(st.st_mode & 07777, cases[i].mode);
        assert_int_equal(st.st_uid, cases[i].owner);
        assert_int_equal(st.st_gid, NOBODY);
        assert_int_equal(filesInFolder(), 1);
    }
    /* The superuser replaces it, and gives it to its owner. */
    struct stat st;
    assert_int_equal(fileReplace(path, SLICE("by root"), 0600, NULL), OK);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_gid, NOBODY);
    assert_int_equal(st.st_mode & 07777, 0644);
}

static int synced_files, synced_folders;

static int countFsync(int fd) {
    struct stat st;
    if (fstat(fd, &st) == 0 && S_ISDIR(st.st_mode)) {
        synced_folders++;
    } else {
        synced_files++;
    }
    return 0;
}

static void test_the_caller_chooses_what_is_flushed(void **state) {
    (void)state;
    const sysCalls counting = {.fsync = countFsync};
    const char *path = testPath("file");
    fileFailure failure;
    for (int flush = FILE_FLUSH_NONE; flush <= FILE_FLUSH_ALL; flush++) {
        synced_files = synced_folders = 0;
        sysCallsSet(&counting);
        assert_int_equal(fileReplaceAs(path, SLICE("x"), 0600, (fileFlush)flush, &failure), OK);
        sysCallsSet(NULL);
        assertContent(path, SLICE("x"));
        assert_int_equal(synced_files, flush >= FILE_FLUSH_CONTENT);
        assert_int_equal(synced_folders, flush == FILE_FLUSH_ALL);
    }
    assert_int_equal(filesInFolder(), 1);
}

static void test_the_step_that_failed_is_told(void **state) {
    (void)state;
    const sysCalls bent[] = {
        {.write = writeUntilFull}, {.fsync = failFsync}, {.rename = failRename}};
    const fileFailure expected[] = {{FILE_WRITE, ENOSPC}, {FILE_SYNC, EIO}, {FILE_RENAME, EXDEV}};
    fileFailure failure;
    for (size_t i = 0; i < COUNT_OF(bent); i++) {
        bent_calls = 0;
        sysCallsSet(&bent[i]);
        assert_int_equal(fileReplaceAs(testPath("file"), SLICE("the new and longer"), 0600,
                                       FILE_FLUSH_CONTENT, &failure),
                         ERR_IO);
        sysCallsSet(NULL);
        assert_int_equal(failure.step, expected[i].step);
        assert_int_equal(failure.error, expected[i].error);
    }
    assert_int_equal(fileReplaceAs("/nonexistent/x", SLICE("x"), 0600, FILE_FLUSH_ALL, &failure),
                     ERR_IO);
    assert_int_equal(failure.step, FILE_CREATE);
    assert_int_equal(failure.error, ENOENT);
    assert_int_equal(filesInFolder(), 0);
}

static void test_folders_that_cannot_be_synced(void **state) {
    (void)state;
    const sysCalls refusing = {.fsync = fsyncRefusesFolders};
    sysCallsSet(&refusing);
    assert_int_equal(fileSyncFolder(testPath("file"), NULL), OK);
    const sysCalls failing = {.fsync = failFsync};
    sysCallsSet(&failing);
    reason why;
    assert_int_equal(fileSyncFolder(testPath("file"), &why), ERR_IO);
    assert_non_null(strstr(why.text, "Input/output error"));
    sysCallsSet(NULL);
    assert_int_equal(fileSyncFolder(testPath("file"), NULL), OK);
    assert_int_equal(fileSyncFolder("plain_name", NULL), OK);
    assert_int_equal(fileSyncFolder("/name_in_the_root", NULL), OK);
    assert_int_equal(fileSyncFolder("/nonexistent/x", NULL), ERR_IO);
}

static void test_writable(void **state) {
    (void)state;
    const char *path = testPath("file");
    assert_true(fileIsWritable(path));
    assert_int_equal(filesInFolder(), 0);
    writePlainly(path, SLICE("kept"));
    assert_true(fileIsWritable(path));
    assertContent(path, SLICE("kept"));
    assert_false(fileIsWritable("/nonexistent/folder/file"));
    if (geteuid() == 0) return; /* root may write everywhere */
    assert_int_equal(chmod(path, 0400), 0);
    assert_false(fileIsWritable(path));
}

static void assertAbsolute(const char *path, const char *expected) {
    char *absolute = fileAbsolute(path);
    assert_string_equal(absolute, expected);
    memFree(absolute);
}

static void test_absolute_names(void **state) {
    (void)state;
    char before[PATH_MAX];
    assert_non_null(getcwd(before, sizeof(before)));
    assert_int_equal(mkdir(testPath("a"), 0700), 0);
    assert_int_equal(chdir(testPath("a")), 0);
    assertAbsolute("/x/../y", "/x/../y");
    assertAbsolute("file.conf", testPath("a/file.conf"));
    assertAbsolute("./file.conf", testPath("a/file.conf"));
    assertAbsolute("../file.conf", testPath("file.conf"));
    assertAbsolute("../b/./../c", testPath("b/./../c"));
    assertAbsolute("../../../../../../x", "/x");
    assert_int_equal(chdir("/"), 0);
    assertAbsolute("x", "/x");
    assertAbsolute("../x", "/x");
    assert_int_equal(chdir(before), 0);
}

static void test_text_of_the_kernel_is_read_in_pieces_and_written_whole(void **state) {
    (void)state;
    const char *path = testPath("text");
    char text[6];
    assert_int_equal(fileReadText(path, text, sizeof(text)), -1);
    assert_int_equal(errno, ENOENT);
    assert_int_equal(fileWriteText(path, "12"), ERR_IO); /* creates nothing */
    writePlainly(path, SLICE("one\n"));
    assert_int_equal(fileReadText(path, text, sizeof(text)), 4);
    assert_string_equal(text, "one\n");
    assert_int_equal(fileWriteText(path, "four and more"), OK);
    assert_int_equal(fileReadText(path, text, sizeof(text)), 5);
    assert_string_equal(text, "four ");
}

int test_file(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_read_reads_all_or_fails, emptyFolder),
        cmocka_unit_test_setup(test_large_files, emptyFolder),
        cmocka_unit_test_setup(test_dash_reads_standard_input, emptyFolder),
        cmocka_unit_test_setup(test_replace_creates_keeps_the_mode_and_removes_its_temporary_file,
                               emptyFolder),
        cmocka_unit_test_setup_teardown(test_short_and_interrupted_calls_are_continued, emptyFolder,
                                        emptyFolder),
        cmocka_unit_test_setup_teardown(test_a_failed_replace_keeps_the_old_file, emptyFolder,
                                        emptyFolder),
        cmocka_unit_test_setup(test_a_link_is_followed_and_stays_a_link, emptyFolder),
        cmocka_unit_test_setup(test_what_is_no_file_is_not_replaced, emptyFolder),
        cmocka_unit_test_setup_teardown(test_a_mounted_file_is_written_in_place, emptyFolder,
                                        emptyFolder),
        cmocka_unit_test_setup(test_owner_and_mode_are_kept_or_the_file_is_refused, emptyFolder),
        cmocka_unit_test_setup_teardown(test_the_caller_chooses_what_is_flushed, emptyFolder,
                                        emptyFolder),
        cmocka_unit_test_setup_teardown(test_the_step_that_failed_is_told, emptyFolder,
                                        emptyFolder),
        cmocka_unit_test_setup_teardown(test_folders_that_cannot_be_synced, emptyFolder,
                                        emptyFolder),
        cmocka_unit_test_setup(test_writable, emptyFolder),
        cmocka_unit_test_setup(test_absolute_names, emptyFolder),
        cmocka_unit_test_setup(test_text_of_the_kernel_is_read_in_pieces_and_written_whole,
                               emptyFolder),
    };
    return cmocka_run_group_tests_name("file", tests, NULL, NULL);
}
