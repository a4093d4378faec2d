/* SPDX-License-Identifier: BSD-3-Clause
 *
 * monitor/scripts.h: the queue of scripts. */
#include "sentinel_test.h"

#include "monitor/scripts.h"

static scriptQueue queue;

static void add(const char *path, const char *arg) {
    slice args[] = {sliceOf(arg)};
    scriptsAdd(&queue, sliceOf(path), 1, args);
}

static void jobs_of_a_script_run_in_their_order(void **state) {
    (void)state;
    scriptsInit(&queue);
    add("/a", "1");
    add("/a", "2");
    add("/b", "3");
    scriptJob *first = scriptsNext(&queue, 100), *other = scriptsNext(&queue, 100);
    assert_string_equal(strText(&first->args[1]), "1");
    assert_string_equal(strText(&other->args[1]), "3");
    assert_null(scriptsNext(&queue, 100));
    assert_false(scriptsEnded(&queue, first, 0, 0, 1000, 200));
    scriptJob *second = scriptsNext(&queue, 200);
    assert_string_equal(strText(&second->args[1]), "2");
    scriptsClear(&queue);
}

static void a_script_that_fails_is_tried_again_after_longer_and_longer_delays(void **state) {
    (void)state;
    scriptsInit(&queue);
    add("/a", "1");
    int64_t now_ms = 0, delay_ms = 1000;
    for (int i = 1; i < SCRIPTS_TRIES_MAX; i++) {
        scriptJob *job = scriptsNext(&queue, now_ms);
        assert_non_null(job);
        assert_int_equal(job->tries, i);
        assert_true(scriptsEnded(&queue, job, 1, 0, 1000, now_ms));
        assert_null(scriptsNext(&queue, now_ms + delay_ms - 1));
        now_ms += delay_ms;
        delay_ms *= 2;
    }
    scriptJob *last = scriptsNext(&queue, now_ms);
    assert_false(scriptsEnded(&queue, last, 1, 0, 1000, now_ms));
    assert_int_equal(queue.jobs.count, 0);
    scriptsClear(&queue);
}

static void other_exit_codes_are_final_and_signals_are_not(void **state) {
    (void)state;
    scriptsInit(&queue);
    add("/a", "1");
    add("/b", "2");
    assert_false(scriptsEnded(&queue, scriptsNext(&queue, 0), 2, 0, 1000, 0));
    assert_true(scriptsEnded(&queue, scriptsNext(&queue, 0), 0, 9, 1000, 0));
    scriptsClear(&queue);
}

static void the_oldest_job_that_waits_is_dropped_from_a_full_queue(void **state) {
    (void)state;
    scriptsInit(&queue);
    for (int i = 0; i < SCRIPTS_QUEUED_MAX; i++) add("/a", i < 2 ? "old" : "new");
    scriptJob *running = scriptsNext(&queue, 0);
    assert_string_equal(strText(&running->args[1]), "old");
    add("/a", "newest");
    assert_int_equal(queue.jobs.count, SCRIPTS_QUEUED_MAX);
    assert_false(scriptsEnded(&queue, running, 0, 0, 1000, 0));
    assert_string_equal(strText(&scriptsNext(&queue, 0)->args[1]), "new");
    scriptsClear(&queue);
}

int test_scripts(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(jobs_of_a_script_run_in_their_order),
        cmocka_unit_test(a_script_that_fails_is_tried_again_after_longer_and_longer_delays),
        cmocka_unit_test(other_exit_codes_are_final_and_signals_are_not),
        cmocka_unit_test(the_oldest_job_that_waits_is_dropped_from_a_full_queue),
    };
    return cmocka_run_group_tests_name("scripts", tests, NULL, NULL);
}
