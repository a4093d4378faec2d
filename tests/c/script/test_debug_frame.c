/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Commands of the debugger, at any division into reads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/base.h"
#include "script/debug_frame.h"

static debugFrames *newFrames(void) { return memNew(debugFrames); }

static void freeFrames(debugFrames *f) {
    debugFramesClear(f);
    memFree(f);
}

static void commands_that_arrive_byte_by_byte(void **state) {
    (void)state;
    static const char bytes[] = "*2\r\n$1\r\ne\r\n$4\r\n\r\n*1\r\n*1\r\n$1\r\ns\r\n";
    debugFrames *f = newFrames();
    int ready = 0;
    for (size_t i = 0; i + 1 < sizeof(bytes); i++) {
        strAppendByte(&f->bytes, bytes[i]);
        debugFrameState st = debugFrameNext(f);
        assert_int_not_equal(st, DEBUG_FRAME_BAD);
        if (st != DEBUG_FRAME_READY) continue;
        ready++;
        assert_int_equal(f->count, ready == 1 ? 2 : 1);
        assert_true(sliceEqual(f->words[0], ready == 1 ? SLICE("e") : SLICE("s")));
        if (ready == 1) assert_true(sliceEqual(f->words[1], SLICE("\r\n*1")));
    }
    assert_int_equal(ready, 2);
    assert_int_equal(debugFrameNext(f), DEBUG_FRAME_INCOMPLETE);
    freeFrames(f);
}

static void several_commands_in_one_read(void **state) {
    (void)state;
    debugFrames *f = newFrames();
    for (int i = 0; i < 100; i++) strAppendText(&f->bytes, "*1\r\n$1\r\ns\r\n");
    for (int i = 0; i < 100; i++) assert_int_equal(debugFrameNext(f), DEBUG_FRAME_READY);
    assert_int_equal(debugFrameNext(f), DEBUG_FRAME_INCOMPLETE);
    assert_int_equal(f->bytes.len, 0);
    freeFrames(f);
}

static void the_largest_command(void **state) {
    (void)state;
    debugFrames *f = newFrames();
    strAppendFormat(&f->bytes, "*%d\r\n", DEBUG_WORDS_MAX);
    for (int i = 0; i < DEBUG_WORDS_MAX; i++) {
        assert_int_equal(debugFrameNext(f), DEBUG_FRAME_INCOMPLETE);
        strAppendFormat(&f->bytes, "$%d\r\n", DEBUG_WORD_BYTES_MAX);
        for (int k = 0; k < DEBUG_WORD_BYTES_MAX; k++) strAppendByte(&f->bytes, 'x');
        strAppendText(&f->bytes, "\r\n");
    }
    assert_int_equal(debugFrameNext(f), DEBUG_FRAME_READY);
    assert_int_equal(f->count, DEBUG_WORDS_MAX);
    freeFrames(f);
}

static void what_is_no_command(void **state) {
    (void)state;
    static const char *const bad[] = {
        "s\r\n",
        "*0\r\n",
        "*-1\r\n",
        "*1025\r\n",
        "*x\r\n",
        "*1\r\n+s\r\n",
        "*1\r\n$0\r\n",
        "*1\r\n$-1\r\n",
        "*1\r\n$1025\r\n",
        "*1\r\n$1\r\nsXY",
        "*1\rx",
        "*999999999999",
        "*1\r\n$1\r\nss\r\n",
    };
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        debugFrames *f = newFrames();
        strAppendText(&f->bytes, bad[i]);
        assert_int_equal(debugFrameNext(f), DEBUG_FRAME_BAD);
        freeFrames(f);
    }
}

int test_debug_frame(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(commands_that_arrive_byte_by_byte),
        cmocka_unit_test(several_commands_in_one_read),
        cmocka_unit_test(the_largest_command),
        cmocka_unit_test(what_is_no_command),
    };
    return cmocka_run_group_tests_name("debug_frame", tests, NULL, NULL);
}
